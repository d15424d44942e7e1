//! Strict JSON values, and their canonical text.

use crate::contract::JsonNode;
use crate::{Error, Result};
use serde_json::Value;

/// The body as UTF-8 text.
pub fn decode_utf8(body: &[u8]) -> Result<&str> {
    std::str::from_utf8(body).map_err(|_| Error::validation("the body is not valid UTF-8"))
}

/// Parses any JSON value without duplicate keys, nested at most [`crate::limits::JSON_DEPTH`] deep.
pub fn parse_value(text: &str) -> Result<Value> {
    Ok(JsonNode::parse(text)?.to_value())
}

/// The canonical text of a value: keys sorted, whole numbers without a fraction. Equal values give equal texts
/// (failure 17).
pub fn to_canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // Beyond 2^53 a float does not distinguish whole numbers, so the digits stay as written.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                out.push_str(&(float as i64).to_string());
            }
            Some(_) | None => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}
