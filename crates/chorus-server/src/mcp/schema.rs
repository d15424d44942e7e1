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

/// The schema of a tool's result: the names of the fields that are always there. No types: several tools answer with the same
/// object, and a model reads them when the result comes.
pub fn output_schema<T: ToSchema>() -> JsonObject {
    let mut components = Vec::new();
    T::schemas(&mut components);
    let mut definitions: Map<String, Value> = components
        .into_iter()
        .map(|(name, component)| (name, serde_json::to_value(component).unwrap_or_default()))
        .collect();
    definitions.extend(request_schemas(COMPONENTS));
    let root = serde_json::to_value(T::schema()).unwrap_or_default();
    let mut published = Map::new();
    // Revision 2025-11-25 requires a type.
    published.insert("type".into(), "object".into());
    published.insert(
        "required".into(),
        required_names(&root, &definitions).into(),
    );
    published
}

const COMPONENTS: &str = "#/components/schemas/";

fn required_names(schema: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    if let Some(pointer) = schema["$ref"].as_str() {
        let target = pointer
            .strip_prefix(COMPONENTS)
            .and_then(|name| definitions.get(name));
        return target.map_or_else(Vec::new, |target| required_names(target, definitions));
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts
            .iter()
            .flat_map(|part| required_names(part, definitions))
            .collect();
    }
    schema["required"].as_array().cloned().unwrap_or_default()
}
