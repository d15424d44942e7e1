//! The JSON Schemas of tools: input from the argument types, output from the wire types.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// Formats that every validator knows. Formats of number sizes are dropped, because some validators reject them.
const KNOWN_FORMATS: [&str; 4] = ["uuid", "date-time", "uri", "byte"];

/// The schema of a tool's arguments. Unknown arguments are refused, so that a misspelt optional one is not ignored.
pub fn input_schema<A: JsonSchema>() -> JsonObject {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let root = settings.into_generator().into_root_schema_for::<A>();
    let mut schema = to_object(root.to_value());
    for omitted in ["$schema", "title", "description"] {
        schema.remove(omitted);
    }
    schema.insert("type".into(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

/// The schema of a tool's result.
pub fn output_schema<T: ToSchema>() -> JsonObject {
    let mut components = Vec::new();
    T::schemas(&mut components);
    let mut schema = to_object(serde_json::to_value(T::schema()).unwrap_or_default());
    let components: Map<String, Value> = components
        .into_iter()
        .map(|(name, component)| {
            (
                name,
                Value::Object(to_object(
                    serde_json::to_value(component).unwrap_or_default(),
                )),
            )
        })
        .collect();
    if !components.is_empty() {
        schema.insert("$defs".into(), Value::Object(components));
    }
    // A composed schema has no type of its own, and revision 2025-11-25 requires one.
    schema.entry("type").or_insert_with(|| json!("object"));
    schema
}

fn to_object(schema: Value) -> JsonObject {
    match clean_schema(schema) {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// Points references into `$defs` instead of the OpenAPI components, and removes keywords that are not JSON Schema.
fn clean_schema(schema: Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter_map(|(key, value)| clean_keyword(key, value))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(clean_schema).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema,
    }
}

fn clean_keyword(key: String, value: Value) -> Option<(String, Value)> {
    match (key.as_str(), value) {
        ("example", _) => None,
        ("format", Value::String(format)) if !KNOWN_FORMATS.contains(&format.as_str()) => None,
        ("$ref", Value::String(target)) => Some((
            key,
            json!(target.replace("#/components/schemas/", "#/$defs/")),
        )),
        // The keys are field names, not schema keywords.
        ("properties", Value::Object(fields)) => {
            let fields = fields
                .into_iter()
                .map(|(name, field)| (name, clean_schema(field)))
                .collect();
            Some((key, Value::Object(fields)))
        }
        (_, value) => Some((key, clean_schema(value))),
    }
}
