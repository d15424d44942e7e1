//! The fields of a frame around its payload, and how they are printed (FRM-01…19).

use super::check::{Check, text, whole};
use super::held::Held;
use super::kind::Kind;
use super::payload::Payload;
use super::read::Object;
use super::shape::{Field, Shape};
use super::word::words;
use crate::{identity::Handle, limits, time::Micros};
use serde::{Serialize, Serializer, ser::SerializeMap};
use uuid::Uuid;

/// The frame's version, the only one (FRM-02).
pub const ENVELOPE_VERSION: &str = "1.0";

words! {
    /// Where the thinking behind a frame was done (FRM-15).
    ComputeLocation {
        ServerActive "server-active",
        ServerAggregate "server-aggregate",
        LocalOnly "local-only",
    }
}

words! {
    /// Whether the sender asked its own policy first (FRM-18).
    ContextCheck { Passed "passed", Skipped "skipped", }
}

/// What a frame rests on. Nothing depends on it here (FRM-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub compute_location: ComputeLocation,
    /// At least one tag.
    pub method: Vec<String>,
    pub return_ref: Option<String>,
    pub context_check: ContextCheck,
    pub basis: String,
}

/// Everything a frame says, not yet checked: what a sender fills in. [`FrameDraft::check`] makes a frame of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameDraft {
    pub frame_id: Uuid,
    pub sender_handle: Handle,
    pub recipient_handle: Handle,
    pub created_at: Micros,
    pub ttl_ms: Option<u64>,
    pub payload: Payload,
    pub acted_by: Handle,
    pub drafted_with: String,
    pub provenance: Provenance,
}

const TAG: Check = text(1, limits::FRAME_ITEM_OCTETS);

const fn required(name: &'static str, check: Check) -> Field {
    Field {
        name,
        required: true,
        check,
    }
}

const fn optional(name: &'static str, check: Check) -> Field {
    Field {
        name,
        required: false,
        check,
    }
}

/// In the order of the draft. The first and the third are judged before the others.
pub const SHAPE: &Shape = &[
    required("envelope_version", Check::OneOf(&[ENVELOPE_VERSION])),
    required("frame_id", Check::Uuid4),
    required("kind", Check::OneOf(Kind::TEXTS)),
    required("sender_handle", Check::Handle),
    required("recipient_handle", Check::Handle),
    required("created_at", Check::Recent),
    optional("ttl_ms", whole(1, limits::WHOLE_NUMBER)),
    required("payload", Check::Payload),
    required("acted_by", Check::Sovereign),
    required("drafted_with", Check::Drafter),
    required(
        "provenance_compute_location",
        Check::OneOf(ComputeLocation::TEXTS),
    ),
    required(
        "provenance_method",
        Check::List {
            least: 1,
            most: limits::FRAME_ITEMS,
            of: &TAG,
        },
    ),
    optional("provenance_return_ref", text(0, limits::FRAME_ITEM_OCTETS)),
    required(
        "provenance_context_check",
        Check::OneOf(ContextCheck::TEXTS),
    ),
    required("provenance_basis", TAG),
];

impl FrameDraft {
    pub fn kind(&self) -> Kind {
        self.payload.kind()
    }

    pub(super) fn of(object: &Object<'_>, payload: Payload) -> Option<Self> {
        fn field<T: Held>(object: &Object<'_>, name: &str) -> Option<T> {
            T::held(object.get(name))
        }
        Some(Self {
            frame_id: field(object, "frame_id")?,
            sender_handle: field(object, "sender_handle")?,
            recipient_handle: field(object, "recipient_handle")?,
            created_at: field(object, "created_at")?,
            ttl_ms: field(object, "ttl_ms")?,
            payload,
            acted_by: field(object, "acted_by")?,
            drafted_with: field(object, "drafted_with")?,
            provenance: Provenance {
                compute_location: field(object, "provenance_compute_location")?,
                method: field(object, "provenance_method")?,
                return_ref: field(object, "provenance_return_ref")?,
                context_check: field(object, "provenance_context_check")?,
                basis: field(object, "provenance_basis")?,
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
