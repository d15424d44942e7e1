//! The frame section of the discovery document, generated from the shapes that check frames.

use super::draft::{self, ENVELOPE_VERSION};
use super::filter::FilterAxis;
use super::kind::FrameKind;
use super::payload::FramePayload;
use super::scope::FrameScope;
use crate::contract::{self, SchemaRefs};
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
        "frame": contract::object_schema(draft::FRAME_SHAPE, SchemaRefs::Inline),
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

/// The payload of one kind as a JSON Schema. `x-max-octets` is the real limit of a text; `maxLength` counts code points, of
/// which there are never more than octets.
pub fn payload_schema(kind: FrameKind) -> Value {
    contract::object_schema(FramePayload::shape_of_kind(kind), SchemaRefs::Inline)
}
