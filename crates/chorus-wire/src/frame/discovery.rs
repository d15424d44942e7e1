//! The frame section of the discovery document, generated from the shapes that check frames.

use super::draft::{self, ENVELOPE_VERSION};
use super::field_check::FieldCheck;
use super::filter::FilterAxis;
use super::kind::FrameKind;
use super::object_shape::ObjectShape;
use super::payload::FramePayload;
use super::scope::FrameScope;
use crate::limits;
use serde_json::{Map, Value, json};

/// The kinds, the schemas of the frame and of every payload, the scopes, the filter axes and the limits.
pub fn describe_capabilities() -> Value {
    let payloads: Map<String, Value> = FrameKind::ALL
        .iter()
        .map(|kind| (kind.to_string(), payload_schema(*kind)))
        .collect();
    json!({
        "envelope_version": ENVELOPE_VERSION,
        "kinds": FrameKind::TEXTS,
        "scopes": FrameScope::FORMS,
        "filter_axes": FilterAxis::TEXTS,
        "frame": object_schema(draft::FRAME_SHAPE),
        "payloads": payloads,
        "limits": {
            "frame_bytes": limits::FRAME_BYTES,
            "array_items": limits::FRAME_ITEMS,
            "item_octets": limits::FRAME_ITEM_OCTETS,
            "handover_octets": limits::HANDOVER_OCTETS,
            "filter_octets": limits::FILTER_OCTETS,
            "clock_skew_seconds": limits::FRAME_CLOCK_SKEW.as_secs(),
            "expansion": limits::SCOPE_EXPANSION_MAX,
        },
    })
}

/// The payload of one kind as a JSON Schema. `maxOctets` is the real limit of a text; `maxLength` counts code points, of
/// which there are never more than octets.
pub fn payload_schema(kind: FrameKind) -> Value {
    object_schema(FramePayload::shape_of_kind(kind))
}

fn object_schema(shape: &ObjectShape) -> Value {
    let required: Vec<&str> = shape
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let properties: Map<String, Value> = shape
        .iter()
        .map(|field| (field.name.to_owned(), value_schema(&field.check)))
        .collect();
    let mut object =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    // Some schema validators refuse an empty `required`.
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn value_schema(check: &FieldCheck) -> Value {
    match check {
        FieldCheck::Text { min, max } => {
            // A text of at least one octet has at least one code point; larger minimums differ between the two units.
            json!({"type": "string", "minLength": (*min).min(1), "maxLength": max, "maxOctets": max})
        }
        FieldCheck::OneOf(texts) => json!({"type": "string", "enum": texts}),
        FieldCheck::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        FieldCheck::Bool => json!({"type": "boolean"}),
        FieldCheck::Uuid4 => json!({"type": "string", "format": "uuid", "pattern": UUID4_PATTERN}),
        FieldCheck::Instant | FieldCheck::Recent => {
            json!({"type": "string", "format": "date-time"})
        }
        FieldCheck::Handle => json!({"type": "string", "pattern": HANDLE_PATTERN}),
        FieldCheck::Sovereign => {
            json!({"type": "string", "pattern": HANDLE_PATTERN, "not": {"pattern": "^~cc-"}})
        }
        FieldCheck::Drafter => json!({"type": "string", "pattern": DRAFTER_PATTERN}),
        FieldCheck::ConvergenceClass => json!({
            "type": "string", "pattern": CLASS_PATTERN, "maxLength": limits::FRAME_LABEL_OCTETS,
            "maxOctets": limits::FRAME_LABEL_OCTETS,
        }),
        FieldCheck::Scope => json!({
            "type": "string", "minLength": 1, "maxLength": limits::FRAME_PATH_OCTETS,
            "maxOctets": limits::FRAME_PATH_OCTETS, "description": "a recipient scope",
        }),
        FieldCheck::List { min, max, of } => {
            json!({"type": "array", "minItems": min, "maxItems": max, "items": value_schema(of)})
        }
        FieldCheck::Object(shape) => object_schema(shape),
        FieldCheck::AnyFlagOpen(shape) => {
            let all_false: Map<String, Value> = shape
                .iter()
                .map(|field| (field.name.to_owned(), json!({"const": false})))
                .collect();
            let flag_names: Vec<&str> = shape.iter().map(|field| field.name).collect();
            let mut object = object_schema(shape);
            object["not"] = json!({"properties": all_false, "required": flag_names});
            object
        }
        FieldCheck::IndexIn(list) => {
            json!({"type": "integer", "minimum": 0, "description": format!("the place of one of {list}")})
        }
        FieldCheck::SameAsFrame(field) => {
            json!({"type": "string", "description": format!("the frame's {field}")})
        }
        FieldCheck::Payload => {
            json!({"type": "object", "description": "the shape of the frame's kind"})
        }
    }
}

const UUID4_PATTERN: &str =
    "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$";
const HANDLE_PATTERN: &str = "^~[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$";
const DRAFTER_PATTERN: &str = "^~[a-z0-9][a-z0-9._-]{0,63}(?:@[A-Za-z0-9._+-]{1,64})?$";
const CLASS_PATTERN: &str = "^[!-9;-~]+:[!-9;-~]+$";
