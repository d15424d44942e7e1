//! Structured parts of a message (A2A 1.0), checked and forwarded unchanged.

use crate::json::JsonFields;
use crate::{Error, Result, limits};
use serde_json::{Value, value::RawValue};

/// A part has exactly one of these keys.
const CONTENT_KEYS: [&str; 4] = ["text", "raw", "url", "data"];

/// Takes the optional `parts` and checks each one.
pub(super) fn take_parts(fields: &mut JsonFields) -> Result<Option<Box<RawValue>>> {
    let parts = match fields.take_value("parts") {
        None => return Ok(None),
        Some(Value::Array(parts)) => parts,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        ) => {
            return Err(Error::validation("parts must be a list"));
        }
    };
    if parts.is_empty() || parts.len() > limits::PARTS_PER_MESSAGE {
        return Err(Error::validation(format!(
            "parts must be 1 to {} parts",
            limits::PARTS_PER_MESSAGE
        )));
    }
    for (index, part) in parts.iter().enumerate() {
        check_part(&format!("parts[{index}]"), part.clone())?;
    }
    let text = Value::Array(parts).to_string();
    RawValue::from_string(text)
        .map(Some)
        .map_err(Error::internal)
}

fn check_part(path: &str, part: Value) -> Result<()> {
    let mut fields = JsonFields::from_value(path, part)?;
    let content_keys: Vec<&str> = CONTENT_KEYS
        .into_iter()
        .filter(|key| fields.contains_key(key))
        .collect();
    let [content_key] = content_keys[..] else {
        return Err(Error::validation(format!(
            "{path} must have exactly one of text, raw, url and data"
        )));
    };
    match content_key {
        "text" => drop(fields.required_string("text")?),
        "raw" => {
            let raw = fields.required_string("raw")?;
            if !is_base64(&raw) {
                return Err(Error::validation(format!("{path}.raw must be base64")));
            }
        }
        "url" => {
            let url = fields.required_string("url")?;
            let is_http =
                url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_http || url.len() > limits::URL_CHARS {
                return Err(Error::validation(format!(
                    "{path}.url must be an absolute http or https URL"
                )));
            }
        }
        // `data` may be any JSON value.
        _ => drop(fields.take_value("data")),
    }
    fields.optional_label("mediaType", limits::LABEL_CHARS)?;
    fields.optional_label("filename", limits::LABEL_CHARS)?;
    if let Some(metadata) = fields.take_value("metadata") {
        JsonFields::from_value(&format!("{path}.metadata"), metadata)?;
    }
    fields.reject_unknown()
}

/// Standard or URL-safe alphabet, with or without padding.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    padding <= 2
        && digits.len() % 4 != 1
        && (padding == 0 || text.len().is_multiple_of(4))
        && digits.bytes().all(is_digit)
}
