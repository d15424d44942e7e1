//! What the discovery document says of frames, made of the tables that check them.

use super::check::Check;
use super::filter::Axis;
use super::kind::Kind;
use super::parts::{self, ENVELOPE_VERSION};
use super::payload::Payload;
use super::scope::Scope;
use super::shape::Shape;
use crate::limits;
use serde_json::{Map, Value, json};

/// Kinds, the shape of the frame and of every payload, scopes, filter axes and bounds.
pub fn capabilities() -> Value {
    let payloads: Map<String, Value> = Kind::ALL
        .iter()
        .map(|kind| (kind.to_string(), payload_schema(*kind)))
        .collect();
    json!({
        "envelope_version": ENVELOPE_VERSION,
        "kinds": Kind::TEXTS,
        "scopes": Scope::FORMS,
        "filter_axes": Axis::TEXTS,
        "frame": schema(parts::SHAPE),
        "payloads": payloads,
        "limits": {
            "frame_bytes": limits::FRAME_BYTES,
            "array_items": limits::FRAME_ITEMS,
            "item_octets": limits::FRAME_ITEM_OCTETS,
            "handover_octets": limits::HANDOVER_OCTETS,
            "filter_octets": limits::FILTER_OCTETS,
            "clock_skew_seconds": limits::FRAME_CLOCK_SKEW.as_secs(),
            "expansion": limits::EXPANSION,
        },
    })
}

/// The payload of one kind as a JSON Schema. `maxOctets` is the true bound of a text: `maxLength` counts code points, of
/// which there are never more.
pub fn payload_schema(kind: Kind) -> Value {
    schema(Payload::shape(kind))
}

fn schema(shape: &Shape) -> Value {
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
    // An empty list is no list to some readers of schemas.
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn value_schema(check: &Check) -> Value {
    match check {
        Check::Text { least, most } => {
            // A text of one octet or more has one code point or more; beyond that the two counts part.
            json!({"type": "string", "minLength": (*least).min(1), "maxLength": most, "maxOctets": most})
        }
        Check::OneOf(words) => json!({"type": "string", "enum": words}),
        Check::Whole { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Check::Flag => json!({"type": "boolean"}),
        Check::Uuid4 => json!({"type": "string", "format": "uuid", "pattern": UUID4}),
        Check::Instant | Check::Recent => json!({"type": "string", "format": "date-time"}),
        Check::Handle => json!({"type": "string", "pattern": HANDLE}),
        Check::Sovereign => {
            json!({"type": "string", "pattern": HANDLE, "not": {"pattern": "^~cc-"}})
        }
        Check::Drafter => json!({"type": "string", "pattern": DRAFTER}),
        Check::Class => json!({
            "type": "string", "pattern": CLASS, "maxLength": limits::FRAME_LABEL_OCTETS,
            "maxOctets": limits::FRAME_LABEL_OCTETS,
        }),
        Check::Scope => json!({
            "type": "string", "minLength": 1, "maxLength": limits::FRAME_PATH_OCTETS,
            "maxOctets": limits::FRAME_PATH_OCTETS, "description": "a recipient scope",
        }),
        Check::List { least, most, of } => {
            json!({"type": "array", "minItems": least, "maxItems": most, "items": value_schema(of)})
        }
        Check::Object(shape) => schema(shape),
        Check::OpenDoor(shape) => {
            let shut: Map<String, Value> = shape
                .iter()
                .map(|field| (field.name.to_owned(), json!({"const": false})))
                .collect();
            let doors: Vec<&str> = shape.iter().map(|field| field.name).collect();
            let mut object = schema(shape);
            object["not"] = json!({"properties": shut, "required": doors});
            object
        }
        Check::PlaceIn(list) => {
            json!({"type": "integer", "minimum": 0, "description": format!("the place of one of {list}")})
        }
        Check::Same(field) => {
            json!({"type": "string", "description": format!("the frame's {field}")})
        }
        Check::Payload => json!({"type": "object", "description": "the shape of the frame's kind"}),
    }
}

const UUID4: &str =
    "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$";
const HANDLE: &str = "^~[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$";
const DRAFTER: &str = "^~[a-z0-9][a-z0-9._-]{0,63}(?:@[A-Za-z0-9._+-]{1,64})?$";
const CLASS: &str = "^[!-9;-~]+:[!-9;-~]+$";
