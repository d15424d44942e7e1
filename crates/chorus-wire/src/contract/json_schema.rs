//! JSON Schemas (2020-12) from shapes and checks.

use super::field_check::{FieldCheck, NestedShape};
use super::object_shape::{FieldPresence, ObjectShape, UnknownFields};
use super::text_grammar::{LengthUnit, RefusedCharacters};
use crate::credits::Credits;
use serde_json::{Map, Value, json};

/// Where the schema of a nested object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaRefs {
    /// In its place: for readers that follow no references.
    Inline,
    /// Under its name at this JSON pointer, such as `#/components/schemas/`.
    At(&'static str),
}

/// The schema of an object.
pub fn object_schema(shape: &ObjectShape, refs: SchemaRefs) -> Value {
    let required: Vec<&str> = shape
        .fields
        .iter()
        .filter(|field| field.presence == FieldPresence::Required)
        .map(|field| field.name)
        .collect();
    let mut properties = Map::new();
    for field in shape.fields {
        let mut schema = value_schema(&field.check, refs);
        if field.presence == FieldPresence::Nullable {
            allow_null(&mut schema);
        }
        describe(&mut schema, field.about);
        properties.insert(field.name.to_owned(), schema);
    }
    let mut schema = json!({"type": "object"});
    describe(&mut schema, shape.about);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = Value::Object(properties);
    if shape.unknown == UnknownFields::Refused {
        schema["additionalProperties"] = Value::Bool(false);
    }
    for rule in shape.rules {
        (rule.describe)(&mut schema, refs);
    }
    if let Ok(example) = serde_json::from_str::<Value>(shape.example) {
        schema["examples"] = json!([example]);
    }
    schema
}

fn describe(schema: &mut Value, about: &str) {
    // A doc comment begins with a blank.
    let about = about.trim();
    if !about.is_empty() {
        schema["description"] = Value::from(about);
    }
}

fn allow_null(schema: &mut Value) {
    if let Some(texts) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        texts.push(Value::Null);
    }
    match schema.get("type").cloned() {
        Some(kind) => {
            schema["type"] = json!([kind, "null"]);
            // A constant would exclude null.
            if let Some(only) = schema.as_object_mut().and_then(|map| map.remove("const")) {
                schema["enum"] = json!([only, null]);
            }
        }
        None if *schema == json!({}) => {}
        None => *schema = json!({"anyOf": [schema.take(), {"type": "null"}]}),
    }
}

/// The schema of one value.
pub fn value_schema(check: &FieldCheck, refs: SchemaRefs) -> Value {
    match check {
        FieldCheck::Text {
            min,
            max,
            unit,
            refused,
        } => text_schema(*min, *max, *unit, *refused),
        FieldCheck::Grammar(grammar) => {
            let min = usize::from(!(grammar.accepts)(""));
            let mut schema = json!({
                "type": "string", "minLength": min, "maxLength": grammar.max_chars, "pattern": grammar.pattern,
            });
            if let Some(pattern) = grammar.refused_pattern {
                schema["not"] = json!({"type": "string", "pattern": pattern});
            }
            if let Some(format) = grammar.format {
                schema["format"] = format.into();
            }
            schema["examples"] = json!([grammar.example]);
            schema
        }
        FieldCheck::OneOf([only]) => json!({"type": "string", "const": only}),
        FieldCheck::OneOf(texts) => json!({"type": "string", "enum": texts}),
        FieldCheck::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        FieldCheck::Credits { zero } => {
            let min = if *zero { 0.0 } else { 0.01 };
            let max = Credits::MAX_AMOUNT.to_hundredths() / 100;
            json!({"type": "number", "minimum": min, "maximum": max, "multipleOf": 0.01, "examples": [0.10]})
        }
        FieldCheck::Bool => json!({"type": "boolean"}),
        FieldCheck::List { min, max, of } => {
            json!({"type": "array", "minItems": min, "maxItems": max, "items": value_schema(of, refs)})
        }
        FieldCheck::Object(shape) => match refs {
            SchemaRefs::Inline => object_schema(shape, refs),
            SchemaRefs::At(pointer) => json!({"$ref": format!("{pointer}{}", shape.name)}),
        },
        FieldCheck::MapOf(of) => {
            json!({"type": "object", "additionalProperties": value_schema(of, refs)})
        }
        FieldCheck::AnyObject => json!({"type": "object"}),
        FieldCheck::AnyValue => json!({}),
        FieldCheck::Custom(check) => (check.schema)(refs),
    }
}

fn text_schema(min: usize, max: usize, unit: LengthUnit, refused: RefusedCharacters) -> Value {
    let mut schema = match unit {
        LengthUnit::Characters if max == usize::MAX => json!({"type": "string", "minLength": min}),
        LengthUnit::Characters => json!({"type": "string", "minLength": min, "maxLength": max}),
        // JSON Schema counts code points, of which there are never more than octets. A text of at least one octet has at
        // least one code point; larger minimums differ between the two units.
        LengthUnit::Octets => {
            json!({"type": "string", "minLength": min.min(1), "maxLength": max, "x-max-octets": max})
        }
    };
    if let Some(pattern) = refused.pattern() {
        schema["pattern"] = pattern.into();
    }
    schema
}

/// The shapes that a shape refers to, each once, and the shape itself first.
pub fn list_nested_shapes(shape: &'static ObjectShape) -> Vec<&'static ObjectShape> {
    fn add(shape: &'static ObjectShape, found: &mut Vec<&'static ObjectShape>) {
        if found.iter().any(|known| known.name == shape.name) {
            return;
        }
        found.push(shape);
        for field in shape.fields {
            if let Some(NestedShape::Object(nested) | NestedShape::Items(nested)) =
                field.check.nested_shape()
            {
                add(nested, found);
            }
            if let FieldCheck::Custom(check) = &field.check {
                check.nested.iter().for_each(|nested| add(nested, found));
            }
        }
    }
    let mut found = Vec::new();
    add(shape, &mut found);
    found
}
