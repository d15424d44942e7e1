//! Structured content beside the text: the parts of A2A 1.0, checked and passed on as they were written.

use crate::json::Fields;
use crate::{Error, Result, limits};
use serde_json::{Value, value::RawValue};

/// What a part may hold; exactly one of them.
const CONTENTS: [&str; 4] = ["text", "raw", "url", "data"];

/// Takes `parts`, which may be absent: a list of parts, each of which is one.
pub(super) fn take(fields: &mut Fields) -> Result<Option<Box<RawValue>>> {
    let parts = match fields.take("parts") {
        None => return Ok(None),
        Some(Value::Array(parts)) => parts,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        ) => {
            return Err(Error::validation("parts must be a list"));
        }
    };
    if parts.is_empty() || parts.len() > limits::PARTS {
        return Err(Error::validation(format!(
            "parts must be 1 to {} parts",
            limits::PARTS
        )));
    }
    for (place, part) in parts.iter().enumerate() {
        check(&format!("parts[{place}]"), part.clone())?;
    }
    let text = Value::Array(parts).to_string();
    RawValue::from_string(text)
        .map(Some)
        .map_err(Error::internal)
}

fn check(path: &str, part: Value) -> Result<()> {
    let mut fields = Fields::of(path, part)?;
    let held: Vec<&str> = CONTENTS.into_iter().filter(|key| fields.has(key)).collect();
    let [held] = held[..] else {
        return Err(Error::validation(format!(
            "{path} must have exactly one of text, raw, url and data"
        )));
    };
    match held {
        "text" => drop(fields.string("text")?),
        "raw" => {
            let raw = fields.string("raw")?;
            if !is_base64(&raw) {
                return Err(Error::validation(format!("{path}.raw must be base64")));
            }
        }
        "url" => {
            let url = fields.string("url")?;
            let good =
                url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !good || url.len() > limits::URL_CHARS {
                return Err(Error::validation(format!(
                    "{path}.url must be an absolute http or https URL"
                )));
            }
        }
        // Any value is data.
        _ => drop(fields.take("data")),
    }
    fields.optional_label("mediaType", limits::LABEL_CHARS)?;
    fields.optional_label("filename", limits::LABEL_CHARS)?;
    if let Some(metadata) = fields.take("metadata") {
        Fields::of(&format!("{path}.metadata"), metadata)?;
    }
    fields.end()
}

/// Either alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    padding <= 2
        && bare.len() % 4 != 1
        && (padding == 0 || text.len().is_multiple_of(4))
        && bare.bytes().all(letter)
}
