//! Schemas of replies: no null where a field is only ever absent, references instead of copies, and no unused component.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const SCHEMA_PREFIX: &str = "#/components/schemas/";

/// Gives `data` of every wrapped reply a reference to its schema. The macro that makes the schema copies it there.
pub fn link_wrapped_data(schemas: &mut Map<String, Value>) {
    let names: BTreeSet<String> = schemas.keys().cloned().collect();
    for (name, schema) in schemas.iter_mut() {
        let Some(data) = name.strip_prefix("SuccessReply_") else {
            continue;
        };
        let reference = |name: &str| json!({"$ref": format!("{SCHEMA_PREFIX}{name}")});
        let list_item = data.strip_prefix("Vec_");
        schema["properties"]["data"] = match list_item {
            Some(item) if names.contains(item) => {
                json!({"type": "array", "items": reference(item)})
            }
            None if names.contains(data) => reference(data),
            Some(_) | None => continue,
        };
        schema["properties"]["success"] = json!({"type": "boolean", "const": true});
    }
}

/// Removes null from the fields of replies that are not required: such a field is absent, never null. A field that can be
/// null is required. Requests are left alone.
pub fn remove_null_from_replies(paths: &Value, schemas: &mut Map<String, Value>) {
    let mut replies = BTreeSet::new();
    for operation in operations(paths) {
        collect_references(&operation["responses"], schemas, &mut replies);
    }
    for name in ["FailureReply", "FrameFailure", "MarketFailure"] {
        collect_references(
            &json!({"$ref": format!("{SCHEMA_PREFIX}{name}")}),
            schemas,
            &mut replies,
        );
    }
    for name in replies {
        if let Some(schema) = schemas.get_mut(&name) {
            remove_optional_nulls(schema);
        }
    }
}

pub fn operations(paths: &Value) -> impl Iterator<Item = &Value> {
    paths
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_object)
        .flat_map(Map::values)
}

fn remove_optional_nulls(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(remove_optional_nulls),
        Value::Object(object) => {
            let required = object.get("required").cloned().unwrap_or_default();
            let is_required = |name: &str| {
                let mut names = required.as_array().into_iter().flatten();
                names.any(|required| required == name)
            };
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (name, property) in properties {
                    if !is_required(name) {
                        remove_null(property);
                    }
                }
            }
            object.values_mut().for_each(remove_optional_nulls);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes null from one schema, however it is allowed there.
pub fn remove_null(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            object.insert("type".into(), only);
        }
    }
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(choices)) = object.get_mut(keyword) else {
            continue;
        };
        choices.retain(|choice| choice["type"] != "null");
        if choices.len() == 1
            && let Value::Object(only) = choices.remove(0)
        {
            object.remove(keyword);
            object.extend(only);
        }
    }
}

/// Removes the schemas that no operation refers to.
pub fn remove_unused_schemas(document: &mut Value) {
    let mut schemas = take_object(&mut document["components"]["schemas"]);
    let mut used = BTreeSet::new();
    collect_references(document, &schemas, &mut used);
    schemas.retain(|name, _| used.contains(name));
    document["components"]["schemas"] = Value::Object(schemas);
}

/// Moves the object out; what is no object counts as an empty one.
pub fn take_object(value: &mut Value) -> Map<String, Value> {
    match value.take() {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// The names of the schemas that `value` refers to, directly or through other schemas.
fn collect_references(value: &Value, schemas: &Map<String, Value>, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(parts) => {
            for part in parts {
                collect_references(part, schemas, found);
            }
        }
        Value::Object(object) => {
            let reference = object.get("$ref").and_then(Value::as_str);
            if let Some(name) = reference.and_then(|text| text.strip_prefix(SCHEMA_PREFIX))
                && found.insert(name.to_owned())
                && let Some(schema) = schemas.get(name)
            {
                collect_references(schema, schemas, found);
            }
            for part in object.values() {
                collect_references(part, schemas, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_removed_where_it_is_never_sent_and_kept_where_it_is() {
        let mut schema = json!({"type": "object", "required": ["owner"], "properties": {
            "owner": {"type": ["string", "null"]},
            "title": {"type": ["string", "null"]},
            "card": {"oneOf": [{"$ref": "#/components/schemas/Card"}, {"type": "null"}]}}});
        remove_optional_nulls(&mut schema);
        assert_eq!(
            schema["properties"],
            json!({"owner": {"type": ["string", "null"]}, "title": {"type": "string"},
                "card": {"$ref": "#/components/schemas/Card"}})
        );
    }

    #[test]
    fn wrapped_data_is_a_reference() {
        let mut schemas = json!({"Row": {"type": "object"},
            "SuccessReply_Row": {"properties": {"data": {"type": "object"}}},
            "SuccessReply_Vec_Row": {"properties": {"data": {"type": "array", "items": {}}}}});
        link_wrapped_data(schemas.as_object_mut().unwrap());
        let row = json!({"$ref": "#/components/schemas/Row"});
        assert_eq!(schemas["SuccessReply_Row"]["properties"]["data"], row);
        assert_eq!(
            schemas["SuccessReply_Vec_Row"]["properties"]["data"]["items"],
            row
        );
    }
}
