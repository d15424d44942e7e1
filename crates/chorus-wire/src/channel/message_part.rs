//! The structured parts of a message: each is an A2A part, forwarded unchanged (R-76).

use crate::contract::{
    ContractFault, CustomCheck, FieldCheck, FieldShape, HTTP_URL, ObjectRule, ObjectShape,
    TextGrammar, UnknownFields, characters,
};
use crate::limits;
use serde_json::json;

/// A part has exactly one of these keys.
const CONTENT_KEYS: [&str; 4] = ["text", "raw", "url", "data"];

/// The optional `parts` of a message.
pub(super) const PARTS_CHECK: FieldCheck = FieldCheck::List {
    min: 1,
    max: limits::PARTS_PER_MESSAGE,
    of: &FieldCheck::Object(PART_SHAPE),
};

pub const PART_SHAPE: &ObjectShape = &ObjectShape {
    name: "MessagePart",
    about: "Structured content: exactly one of text, raw, url and data.",
    fields: &[
        FieldShape::optional("text", "A text.", ANY_TEXT),
        FieldShape::optional("raw", "Bytes as base64.", FieldCheck::Grammar(&BASE64)),
        FieldShape::optional(
            "url",
            "Where the content is.",
            FieldCheck::Grammar(&HTTP_URL),
        ),
        FieldShape::optional("data", "Any JSON value.", FieldCheck::AnyValue),
        FieldShape::optional(
            "mediaType",
            "The media type of the content.",
            characters(1, limits::LABEL_CHARS),
        ),
        FieldShape::optional(
            "filename",
            "A name for the content.",
            characters(1, limits::LABEL_CHARS),
        ),
        FieldShape::optional("metadata", "Anything else.", FieldCheck::AnyObject),
    ],
    unknown: UnknownFields::Refused,
    rules: &[ONE_CONTENT_RULE],
    example: r#"{"text": "hello", "mediaType": "text/plain"}"#,
};

/// Of any length: the size of the whole message is limited.
const ANY_TEXT: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| {
        let is_text = value.node.as_text().is_some();
        (!is_text).then(|| ContractFault::invalid("", "a string"))
    },
    schema: |_| json!({"type": "string"}),
    nested: &[],
});

const ONE_CONTENT_RULE: ObjectRule = ObjectRule {
    find_fault: |part| {
        let count = CONTENT_KEYS
            .iter()
            .filter(|key| part.get(key).is_some())
            .count();
        (count != 1).then(|| {
            ContractFault::invalid("", "a part with exactly one of text, raw, url and data")
        })
    },
    describe: |schema, _| {
        let alternatives: Vec<_> = CONTENT_KEYS
            .iter()
            .map(|key| json!({"required": [key], "properties": {(*key): {}}}))
            .collect();
        schema["oneOf"] = alternatives.into();
    },
};

/// Standard or URL-safe alphabet, with or without padding.
const BASE64: TextGrammar = TextGrammar {
    accepts: is_base64,
    requirement: "base64",
    pattern: "^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?$",
    refused_pattern: None,
    max_chars: limits::CHANNEL_MESSAGE_CHARS,
    format: None,
    example: "aGVsbG8=",
};

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    padding <= 2
        && digits.len() % 4 != 1
        && (padding == 0 || text.len().is_multiple_of(4))
        && digits.bytes().all(is_digit)
}
