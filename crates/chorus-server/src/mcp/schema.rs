//! The JSON Schemas of tools: input from the objects that parse the arguments, output from the wire types.
//!
//! Every conversation of a model carries the published schemas, so they are short: what a model needs to fill in the
//! arguments and to read the result. The hub checks arguments against all that their object says. Forms that some vendor
//! of models refuses or ignores are left out: references, compositions, formats, several types of one field, and closed
//! objects.

use chorus_wire::contract::{FieldPresence, ObjectShape, SchemaRefs, value_schema};
use chorus_wire::schemas::request_schemas;
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// What models see of the arguments.
pub fn input_schema(shape: &ObjectShape) -> JsonObject {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in shape.fields {
        let mut schema = shorten_schema(&value_schema(&field.check, SchemaRefs::Inline));
        schema.insert("description".into(), field.about.trim().into());
        properties.insert(field.name.into(), schema.into());
        if field.presence == FieldPresence::Required {
            required.push(field.name);
        }
    }
    let mut published = Map::new();
    published.insert("type".into(), "object".into());
    published.insert("properties".into(), properties.into());
    if !required.is_empty() {
        published.insert("required".into(), required.into());
    }
    published
}

fn shorten_schema(full: &Value) -> JsonObject {
    let mut published = Map::new();
    let kind = match &full["type"] {
        // Several types of one field: the text form is the one that every vendor takes.
        Value::Array(kinds) if kinds.contains(&json!("string")) => json!("string"),
        Value::Array(kinds) => kinds.first().cloned().unwrap_or_default(),
        // Any value: models send an object, and some vendors need a type.
        Value::Null => json!("object"),
        kind @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            kind.clone()
        }
    };
    published.insert("type".into(), kind);
    if let Some(texts) = full.get("enum") {
        published.insert("enum".into(), texts.clone());
    }
    if let Some(items) = full.get("items") {
        published.insert("items".into(), shorten_schema(items).into());
    }
    published
}

/// The schema of a tool's result: the fields that are always there, by name and type. A model reads the rest when it comes.
pub fn output_schema<T: ToSchema>() -> JsonObject {
    let mut components = Vec::new();
    T::schemas(&mut components);
    let mut definitions: Map<String, Value> = components
        .into_iter()
        .map(|(name, component)| (name, serde_json::to_value(component).unwrap_or_default()))
        .collect();
    definitions.extend(request_schemas(COMPONENTS));
    let root = serde_json::to_value(T::schema()).unwrap_or_default();
    let mut schema = match publish_result(&root, &definitions, 0) {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    // Revision 2025-11-25 requires a type.
    schema.entry("type").or_insert_with(|| json!("object"));
    schema
}

const COMPONENTS: &str = "#/components/schemas/";

/// A result with more fields than this is published without their types.
const LARGE_RESULT: usize = 8;

fn publish_result(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Value {
    if let Some(pointer) = schema["$ref"].as_str() {
        let target = pointer
            .strip_prefix(COMPONENTS)
            .and_then(|name| definitions.get(name));
        return target.map_or_else(
            || json!({}),
            |target| publish_result(target, definitions, depth),
        );
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return merge_parts(parts, definitions, depth);
    }
    let kinds = schema.get("type");
    // One of several forms, or any value: nothing is promised.
    let Some(kinds) = kinds.filter(|_| schema.get("oneOf").is_none()) else {
        return json!({});
    };
    let mut published = json!({"type": kinds});
    if let Some(texts) = schema.get("enum") {
        published["enum"] = texts.clone();
    }
    if let Some(items) = schema.get("items") {
        published["items"] = publish_result(items, definitions, depth);
    }
    if depth == 0
        && let Some(fields) = schema["properties"].as_object()
    {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        // Of a large object only the names: they tell a model enough.
        if required.len() <= LARGE_RESULT {
            published["properties"] = fields
                .iter()
                .filter(|(name, _)| required.contains(&json!(name)))
                .map(|(name, field)| (name.clone(), publish_result(field, definitions, 1)))
                .collect();
        }
        published["required"] = required.into();
    }
    published
}

/// The fields of all parts in one object.
fn merge_parts(parts: &[Value], definitions: &Map<String, Value>, depth: usize) -> Value {
    let mut merged = json!({"type": "object", "properties": {}, "required": []});
    for part in parts {
        let part = publish_result(part, definitions, depth);
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            merged["properties"][name] = field.clone();
        }
        if let (Some(all), Some(own)) = (
            merged["required"].as_array_mut(),
            part["required"].as_array(),
        ) {
            all.extend(own.iter().cloned());
        }
    }
    merged
}
