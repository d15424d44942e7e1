//! The fifteen payloads. One definition per kind gives its type, its checks and its published schema (FRM-28…47, R-40).

use super::field_check::{FieldCheck, integer_between, text_between};
use super::from_node::FromNode;
use super::json_tree::{JsonNode, JsonObject};
use super::kind::FrameKind;
use super::object_shape::{FieldShape, ObjectShape};
use super::scope::FrameScope;
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros};
use serde::Serialize;
use uuid::Uuid;

string_enum! {
    /// The event that a broadcast announces.
    EventClass { Merged "merged", Stale "stale", Released "released", Other "other", }
}

string_enum! {
    /// How severe a symptom is.
    DiagnosticSeverity { Info "info", Degraded "degraded", Blocked "blocked", }
}

string_enum! {
    /// How soon an intent should be carried out.
    IntentUrgency { Normal "normal", Urgent "urgent", }
}

/// The Rust type of a field: optional fields are `Option`.
macro_rules! field_type {
    (required $value:ty) => { $value };
    (optional $value:ty) => { Option<$value> };
}

macro_rules! is_required {
    (required) => {
        true
    };
    (optional) => {
        false
    };
}

/// Defines an object: its struct, its shape, and the conversion from a checked JSON tree.
macro_rules! wire_object {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $need:ident $field:ident: $value:ty = $check:expr;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "FromNode::is_absent")] pub $field: field_type!($need $value),)+
        }

        impl $name {
            const SHAPE: &'static ObjectShape = &[
                $(FieldShape { name: stringify!($field), required: is_required!($need), check: $check },)+
            ];

            fn from_object(object: &JsonObject<'_>) -> Option<Self> {
                Some(Self { $($field: FromNode::from_node(object.get(stringify!($field)))?,)+ })
            }
        }

        impl FromNode for $name {
            fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
                Self::from_object(node?.as_object()?)
            }
        }
    };
}

/// Defines the payload of each kind, and the enum of all of them.
macro_rules! payload_kinds {
    ($($(#[$about:meta])* $name:ident { $($fields:tt)+ })+) => {
        $(wire_object! { $(#[$about])* $name { $($fields)+ } })+

        /// The payload of a frame. Its variant is the frame's kind.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum FramePayload { $($name($name)),+ }

        impl FramePayload {
            pub const fn kind(&self) -> FrameKind {
                match self { $(Self::$name(_) => FrameKind::$name),+ }
            }

            pub(super) const fn shape_of_kind(kind: FrameKind) -> &'static ObjectShape {
                match kind { $(FrameKind::$name => $name::SHAPE),+ }
            }

            pub(super) fn from_object(kind: FrameKind, object: &JsonObject<'_>) -> Option<Self> {
                match kind { $(FrameKind::$name => $name::from_object(object).map(Self::$name)),+ }
            }
        }

        $(impl From<$name> for FramePayload {
            fn from(payload: $name) -> Self {
                Self::$name(payload)
            }
        })+
    };
}

/// A text that people read.
const SENTENCE_CHECK: FieldCheck = text_between(1, limits::FRAME_TEXT_OCTETS);
const LABEL_CHECK: FieldCheck = text_between(1, limits::FRAME_LABEL_OCTETS);
const SESSION_ID_CHECK: FieldCheck = text_between(1, limits::SESSION_OCTETS);
/// A required reference.
const POINTER_CHECK: FieldCheck = text_between(1, limits::FRAME_ITEM_OCTETS);
const REFERENCE_CHECK: FieldCheck = text_between(0, limits::FRAME_ITEM_OCTETS);
const REFERENCES_CHECK: FieldCheck = FieldCheck::List {
    min: 0,
    max: limits::FRAME_ITEMS,
    of: &REFERENCE_CHECK,
};
const SENTENCES_CHECK: FieldCheck = FieldCheck::List {
    min: 0,
    max: limits::FRAME_ITEMS,
    of: &SENTENCE_CHECK,
};
const OPTIONS_CHECK: FieldCheck = FieldCheck::List {
    min: 2,
    max: 4,
    of: &FieldCheck::Object(DecisionOption::SHAPE),
};
const LEASE_CHECK: FieldCheck = integer_between(1, limits::LEASE_MAX_MS);
const POSITIVE_INTEGER_CHECK: FieldCheck = integer_between(1, limits::SAFE_INTEGER_MAX);

payload_kinds! {
    /// FRM-29
    AgentAdvisory {
        required advisory_text: String = SENTENCE_CHECK;
        optional file_refs: Vec<String> = REFERENCES_CHECK;
        optional worktree: String = text_between(0, limits::FRAME_PATH_OCTETS);
        optional branch: String = text_between(0, limits::FRAME_LABEL_OCTETS);
    }

    /// FRM-30
    AgentBroadcast {
        required broadcast_text: String = SENTENCE_CHECK;
        required event_class: EventClass = FieldCheck::OneOf(EventClass::TEXTS);
        optional refs: Vec<String> = REFERENCES_CHECK;
    }

    /// FRM-31
    AgentHandover {
        required previous_session_id: String = SESSION_ID_CHECK;
        /// Absent in an offer; the session that accepts sends a handover of its own (FRM-32).
        optional next_session_id: String = text_between(0, limits::SESSION_OCTETS);
        required handover_body: String = text_between(1, limits::HANDOVER_OCTETS);
        optional pointer_refs: Vec<String> = REFERENCES_CHECK;
    }

    /// FRM-33
    AgentLockRequest {
        required resource: String = text_between(1, limits::FRAME_PATH_OCTETS);
        required lease_id: Uuid = FieldCheck::Uuid4;
        required ttl_ms: u64 = LEASE_CHECK;
        optional intent: String = text_between(0, limits::FRAME_TEXT_OCTETS);
    }

    ///
    AgentLockRelease {
        required lease_id: Uuid = FieldCheck::Uuid4;
        optional resource: String = text_between(0, limits::FRAME_PATH_OCTETS);
    }

    ///
    AgentLeaseExtend {
        required lease_id: Uuid = FieldCheck::Uuid4;
        /// Added to the remaining lease.
        required ttl_ms: u64 = LEASE_CHECK;
    }

    /// FRM-36
    AgentQuery {
        required query_text: String = SENTENCE_CHECK;
        required query_id: Uuid = FieldCheck::Uuid4;
        /// The scope for responses.
        required response_scope: FrameScope = FieldCheck::Scope;
        required timeout_ms: u64 = POSITIVE_INTEGER_CHECK;
    }

    ///
    AgentResponse {
        required query_id: Uuid = FieldCheck::Uuid4;
        required response_text: String = SENTENCE_CHECK;
        required responder_session_id: String = SESSION_ID_CHECK;
        optional responded_to_frame_id: Uuid = FieldCheck::Uuid4;
        optional answer_attempt_idx: u64 = POSITIVE_INTEGER_CHECK;
    }

    /// FRM-38
    AgentReturnEvent {
        required return_event_ref: String = text_between(1, limits::FRAME_LABEL_OCTETS);
        optional query_id: Uuid = FieldCheck::Uuid4;
        required summary: String = SENTENCE_CHECK;
    }

    /// FRM-39
    AgentBindingMoment {
        required synopsis: String = SENTENCE_CHECK;
        required findings: Vec<String> = SENTENCES_CHECK;
        required recommendations: Vec<String> = SENTENCES_CHECK;
        required offer: String = SENTENCE_CHECK;
        required question: DecisionQuestion = FieldCheck::Object(DecisionQuestion::SHAPE);
    }

    /// FRM-42
    PeerDiagnosticRequest {
        required symptom: String = SENTENCE_CHECK;
        required diagnostic_id: Uuid = FieldCheck::Uuid4;
        optional substrate_refs: Vec<String> = REFERENCES_CHECK;
        required severity: DiagnosticSeverity = FieldCheck::OneOf(DiagnosticSeverity::TEXTS);
    }

    ///
    PeerDiagnosticResponse {
        required diagnostic_id: Uuid = FieldCheck::Uuid4;
        required finding: String = SENTENCE_CHECK;
        optional remediation: String = SENTENCE_CHECK;
        optional substrate_refs: Vec<String> = REFERENCES_CHECK;
    }

    /// FRM-44
    IntentDeclare {
        required convergence_class: String = FieldCheck::ConvergenceClass;
        required payload_ref: String = POINTER_CHECK;
        required acted_by: Handle = FieldCheck::SameAsFrame("acted_by");
        required drafted_with: String = FieldCheck::SameAsFrame("drafted_with");
        required declared_at: UnixMicros = FieldCheck::Instant;
        /// Milliseconds after which the intent expires.
        required ttl: u64 = POSITIVE_INTEGER_CHECK;
        required withdrawable: bool = FieldCheck::Bool;
        optional urgency: IntentUrgency = FieldCheck::OneOf(IntentUrgency::TEXTS);
    }

    /// FRM-45
    IntentWithdraw {
        required convergence_class: String = FieldCheck::ConvergenceClass;
        required intent_ref: String = POINTER_CHECK;
        required withdrawn_at: UnixMicros = FieldCheck::Instant;
    }

    /// FRM-46
    FlushExecuted {
        required convergence_class: String = FieldCheck::ConvergenceClass;
        required result_ref: String = POINTER_CHECK;
        optional batch_refs: Vec<String> = REFERENCES_CHECK;
        required executed_at: UnixMicros = FieldCheck::Instant;
    }
}

wire_object! {
    /// The decision that is asked for (FRM-40).
    DecisionQuestion {
        required stem: String = SENTENCE_CHECK;
        required options: Vec<DecisionOption> = OPTIONS_CHECK;
        /// Counted from 0.
        required recommended_idx: u64 = FieldCheck::IndexIn("options");
        /// If absent, both are open.
        optional hatches: EscapeHatches = FieldCheck::AnyFlagOpen(EscapeHatches::SHAPE);
    }
}

wire_object! {
    /// One of the offered answers.
    DecisionOption {
        required label: String = LABEL_CHECK;
        required reasoning: String = SENTENCE_CHECK;
    }
}

wire_object! {
    /// The alternatives to the offered answers; at least one stays open (FRM-41).
    EscapeHatches {
        optional free_text: bool = FieldCheck::Bool;
        optional dialogue: bool = FieldCheck::Bool;
    }
}

impl DecisionQuestion {
    /// Whether the receiver may answer in its own words.
    pub fn allows_free_text(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.free_text)
            .unwrap_or(true)
    }

    /// Whether the receiver may discuss the question first.
    pub fn allows_dialogue(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.dialogue)
            .unwrap_or(true)
    }
}
