//! The fields of a frame around its payload, their checks and their JSON form (FRM-01…19).

use super::grammars::{
    DRAFTER_CHECK, HANDLE_CHECK, PAYLOAD_CHECK, RECENT_CHECK, SOVEREIGN_CHECK, UUID4_CHECK,
};
use super::kind::FrameKind;
use super::payload::FramePayload;
use crate::contract::{
    self, FieldCheck, FieldShape, FromNode, JsonObject, ObjectShape, SchemaRefs, UnknownFields,
    integer_between, octets,
};
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
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

const TAG_CHECK: FieldCheck = octets(1, limits::FRAME_ITEM_OCTETS);

/// The fields in the order of the draft. `envelope_version` and `kind` are checked before the others (R-44).
pub const FRAME_SHAPE: &ObjectShape = &ObjectShape {
    name: "Frame",
    about: "A short structured announcement to live sessions.",
    fields: &[
        FieldShape::required(
            "envelope_version",
            "The version of the frame protocol.",
            FieldCheck::OneOf(&[ENVELOPE_VERSION]),
        ),
        FieldShape::required(
            "frame_id",
            "A new UUID. A frame that is sent again keeps it, and no session hears it twice.",
            UUID4_CHECK,
        ),
        FieldShape::required(
            "kind",
            "What the frame is; it decides the shape of the payload.",
            FieldCheck::OneOf(FrameKind::TEXTS),
        ),
        FieldShape::required("sender_handle", "The sender's own handle.", HANDLE_CHECK),
        FieldShape::required(
            "recipient_handle",
            "The handle of the agent or organisation that the frame is for.",
            HANDLE_CHECK,
        ),
        FieldShape::required(
            "created_at",
            "When the sender made it: within 24 hours of the hub's clock.",
            RECENT_CHECK,
        ),
        FieldShape::optional(
            "ttl_ms",
            "Milliseconds after which the content is stale.",
            integer_between(1, limits::SAFE_INTEGER_MAX),
        ),
        FieldShape::required(
            "payload",
            "The content, in the shape of the kind.",
            PAYLOAD_CHECK,
        ),
        FieldShape::required(
            "acted_by",
            "The person or organisation that answers for it, never an instrument.",
            SOVEREIGN_CHECK,
        ),
        FieldShape::required(
            "drafted_with",
            "The instrument that wrote it.",
            DRAFTER_CHECK,
        ),
        FieldShape::required(
            "provenance_compute_location",
            "Where the computation behind it ran.",
            FieldCheck::OneOf(ComputeLocation::TEXTS),
        ),
        FieldShape::required(
            "provenance_method",
            "How it came about, as tags.",
            FieldCheck::List {
                min: 1,
                max: limits::FRAME_ITEMS,
                of: &TAG_CHECK,
            },
        ),
        FieldShape::optional(
            "provenance_return_ref",
            "The result that it refers to.",
            octets(0, limits::FRAME_ITEM_OCTETS),
        ),
        FieldShape::required(
            "provenance_context_check",
            "Whether the sender checked its own policy first.",
            FieldCheck::OneOf(ContextCheck::TEXTS),
        ),
        FieldShape::required("provenance_basis", "On what it is based.", TAG_CHECK),
    ],
    unknown: UnknownFields::Refused,
    rules: &[],
    example: r#"{"envelope_version":"1.0","frame_id":"3b241101-e2bb-4255-8caf-4136c566a962","kind":"agent_advisory",
        "sender_handle":"~alice","recipient_handle":"~alice","created_at":"2026-02-11T14:15:09Z",
        "payload":{"advisory_text":"The API has moved to v2."},"acted_by":"~alice","drafted_with":"~cc-editor@1.2",
        "provenance_compute_location":"local-only","provenance_method":["llm"],"provenance_context_check":"passed",
        "provenance_basis":"commit 4f2a"}"#,
};

/// The schema of a frame of one kind.
pub fn frame_schema(kind: FrameKind, refs: SchemaRefs) -> Value {
    let mut schema = contract::object_schema(FRAME_SHAPE, refs);
    let payload = FieldCheck::Object(FramePayload::shape_of_kind(kind));
    schema["properties"]["kind"]["const"] = kind.as_str().into();
    if let Some(field) = schema["properties"]["kind"].as_object_mut() {
        field.remove("enum");
    }
    schema["properties"]["payload"] = contract::value_schema(&payload, refs);
    if let Some(frame) = schema
        .as_object_mut()
        .filter(|_| kind != FrameKind::AgentAdvisory)
    {
        frame.remove("examples");
    }
    schema
}

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
