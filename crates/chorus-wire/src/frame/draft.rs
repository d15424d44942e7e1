//! The fields of a frame around its payload, their checks and their JSON form (FRM-01…19).

use super::field_check::{FieldCheck, integer_between, text_between};
use super::from_node::FromNode;
use super::json_tree::JsonObject;
use super::kind::FrameKind;
use super::object_shape::{FieldShape, ObjectShape};
use super::payload::FramePayload;
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros};
use serde::{Serialize, Serializer, ser::SerializeMap};
use uuid::Uuid;

/// The only version of frames (FRM-02).
pub const ENVELOPE_VERSION: &str = "1.0";

string_enum! {
    /// Where the computation behind a frame ran (FRM-15).
    ComputeLocation {
        ServerActive "server-active",
        ServerAggregate "server-aggregate",
        LocalOnly "local-only",
    }
}

string_enum! {
    /// Whether the sender checked its own policy first (FRM-18).
    ContextCheck { Passed "passed", Skipped "skipped", }
}

/// How the content of a frame came about. The hub does not act on it (FRM-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameProvenance {
    pub compute_location: ComputeLocation,
    /// At least one tag.
    pub method: Vec<String>,
    pub return_ref: Option<String>,
    pub context_check: ContextCheck,
    pub basis: String,
}

/// An unchecked frame that a sender fills in. [`FrameDraft::to_frame`] checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameDraft {
    pub frame_id: Uuid,
    pub sender_handle: Handle,
    pub recipient_handle: Handle,
    pub created_at: UnixMicros,
    pub ttl_ms: Option<u64>,
    pub payload: FramePayload,
    pub acted_by: Handle,
    pub drafted_with: String,
    pub provenance: FrameProvenance,
}

const TAG_CHECK: FieldCheck = text_between(1, limits::FRAME_ITEM_OCTETS);

const fn required_field(name: &'static str, check: FieldCheck) -> FieldShape {
    FieldShape {
        name,
        required: true,
        check,
    }
}

const fn optional_field(name: &'static str, check: FieldCheck) -> FieldShape {
    FieldShape {
        name,
        required: false,
        check,
    }
}

/// The fields in the order of the draft. `envelope_version` and `kind` are checked before the others.
pub const FRAME_SHAPE: &ObjectShape = &[
    required_field("envelope_version", FieldCheck::OneOf(&[ENVELOPE_VERSION])),
    required_field("frame_id", FieldCheck::Uuid4),
    required_field("kind", FieldCheck::OneOf(FrameKind::TEXTS)),
    required_field("sender_handle", FieldCheck::Handle),
    required_field("recipient_handle", FieldCheck::Handle),
    required_field("created_at", FieldCheck::Recent),
    optional_field("ttl_ms", integer_between(1, limits::SAFE_INTEGER_MAX)),
    required_field("payload", FieldCheck::Payload),
    required_field("acted_by", FieldCheck::Sovereign),
    required_field("drafted_with", FieldCheck::Drafter),
    required_field(
        "provenance_compute_location",
        FieldCheck::OneOf(ComputeLocation::TEXTS),
    ),
    required_field(
        "provenance_method",
        FieldCheck::List {
            min: 1,
            max: limits::FRAME_ITEMS,
            of: &TAG_CHECK,
        },
    ),
    optional_field(
        "provenance_return_ref",
        text_between(0, limits::FRAME_ITEM_OCTETS),
    ),
    required_field(
        "provenance_context_check",
        FieldCheck::OneOf(ContextCheck::TEXTS),
    ),
    required_field("provenance_basis", TAG_CHECK),
];

impl FrameDraft {
    pub fn kind(&self) -> FrameKind {
        self.payload.kind()
    }

    pub(super) fn from_object(object: &JsonObject<'_>, payload: FramePayload) -> Option<Self> {
        fn read_field<T: FromNode>(object: &JsonObject<'_>, name: &str) -> Option<T> {
            T::from_node(object.get(name))
        }
        Some(Self {
            frame_id: read_field(object, "frame_id")?,
            sender_handle: read_field(object, "sender_handle")?,
            recipient_handle: read_field(object, "recipient_handle")?,
            created_at: read_field(object, "created_at")?,
            ttl_ms: read_field(object, "ttl_ms")?,
            payload,
            acted_by: read_field(object, "acted_by")?,
            drafted_with: read_field(object, "drafted_with")?,
            provenance: FrameProvenance {
                compute_location: read_field(object, "provenance_compute_location")?,
                method: read_field(object, "provenance_method")?,
                return_ref: read_field(object, "provenance_return_ref")?,
                context_check: read_field(object, "provenance_context_check")?,
                basis: read_field(object, "provenance_basis")?,
            },
        })
    }
}

impl Serialize for FrameDraft {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("envelope_version", ENVELOPE_VERSION)?;
        map.serialize_entry("frame_id", &self.frame_id)?;
        map.serialize_entry("kind", &self.kind())?;
        map.serialize_entry("sender_handle", &self.sender_handle)?;
        map.serialize_entry("recipient_handle", &self.recipient_handle)?;
        map.serialize_entry("created_at", &self.created_at)?;
        if let Some(ttl_ms) = self.ttl_ms {
            map.serialize_entry("ttl_ms", &ttl_ms)?;
        }
        map.serialize_entry("payload", &self.payload)?;
        map.serialize_entry("acted_by", &self.acted_by)?;
        map.serialize_entry("drafted_with", &self.drafted_with)?;
        map.serialize_entry(
            "provenance_compute_location",
            &self.provenance.compute_location,
        )?;
        map.serialize_entry("provenance_method", &self.provenance.method)?;
        if let Some(reference) = &self.provenance.return_ref {
            map.serialize_entry("provenance_return_ref", reference)?;
        }
        map.serialize_entry("provenance_context_check", &self.provenance.context_check)?;
        map.serialize_entry("provenance_basis", &self.provenance.basis)?;
        map.end()
    }
}
