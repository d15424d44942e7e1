//! The fifteen payloads: one shape per kind, which is at once the type, the table of checks and what is published (FRM-28…47, R-40).

use super::field_check::{FieldCheck, integer_between, text_between};
use super::from_node::FromNode;
use super::json_tree::{JsonNode, JsonObject};
use super::kind::FrameKind;
use super::object_shape::{FieldShape, ObjectShape};
use super::scope::FrameScope;
use super::string_enum::words;
use crate::{identity::Handle, limits, time::UnixMicros};
use serde::Serialize;
use uuid::Uuid;

words! {
    /// What a broadcast is about.
    EventClass { Merged "merged", Stale "stale", Released "released", Other "other", }
}

words! {
    /// How bad it is.
    DiagnosticSeverity { Info "info", Degraded "degraded", Blocked "blocked", }
}

words! {
    /// How soon an intent is to be carried out.
    IntentUrgency { Normal "normal", Urgent "urgent", }
}

macro_rules! held {
    (required $held:ty) => { $held };
    (optional $held:ty) => { Option<$held> };
}

macro_rules! is_required {
    (required) => {
        true
    };
    (optional) => {
        false
    };
}

/// An object on the wire: its type, its shape, and how the one is made of a tree that keeps the other.
macro_rules! object {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $need:ident $field:ident: $held:ty = $check:expr;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "FromNode::is_absent")] pub $field: held!($need $held),)+
        }

        impl $name {
            const SHAPE: &'static ObjectShape = &[
                $(FieldShape { name: stringify!($field), required: is_required!($need), check: $check },)+
            ];

            fn of(object: &JsonObject<'_>) -> Option<Self> {
                Some(Self { $($field: FromNode::from_node(object.get(stringify!($field)))?,)+ })
            }
        }

        impl FromNode for $name {
            fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
                Self::of(node?.as_object()?)
            }
        }
    };
}

macro_rules! payloads {
    ($($(#[$about:meta])* $name:ident { $($fields:tt)+ })+) => {
        $(object! { $(#[$about])* $name { $($fields)+ } })+

        /// The body of a frame. Its variant is the frame's kind.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Payload { $($name($name)),+ }

        impl Payload {
            pub const fn kind(&self) -> FrameKind {
                match self { $(Self::$name(_) => FrameKind::$name),+ }
            }

            pub(super) const fn shape(kind: FrameKind) -> &'static ObjectShape {
                match kind { $(FrameKind::$name => $name::SHAPE),+ }
            }

            pub(super) fn of(kind: FrameKind, object: &JsonObject<'_>) -> Option<Self> {
                match kind { $(FrameKind::$name => $name::of(object).map(Self::$name)),+ }
            }
        }

        $(impl From<$name> for Payload {
            fn from(payload: $name) -> Self {
                Self::$name(payload)
            }
        })+
    };
}

/// What people read.
const SENTENCE_CHECK: FieldCheck = text_between(1, limits::FRAME_TEXT_OCTETS);
const LABEL_CHECK: FieldCheck = text_between(1, limits::FRAME_LABEL_OCTETS);
const SESSION_ID_CHECK: FieldCheck = text_between(1, limits::SESSION_OCTETS);
/// One reference that must be there.
const POINTER_CHECK: FieldCheck = text_between(1, limits::FRAME_ITEM_OCTETS);
const REFERENCE_CHECK: FieldCheck = text_between(0, limits::FRAME_ITEM_OCTETS);
const REFERENCES_CHECK: FieldCheck = FieldCheck::List {
    least: 0,
    most: limits::FRAME_ITEMS,
    of: &REFERENCE_CHECK,
};
const SENTENCES_CHECK: FieldCheck = FieldCheck::List {
    least: 0,
    most: limits::FRAME_ITEMS,
    of: &SENTENCE_CHECK,
};
const OPTIONS_CHECK: FieldCheck = FieldCheck::List {
    least: 2,
    most: 4,
    of: &FieldCheck::Object(DecisionOption::SHAPE),
};
const LEASE_CHECK: FieldCheck = integer_between(1, limits::LEASE_MAX_MS);
const POSITIVE_INTEGER_CHECK: FieldCheck = integer_between(1, limits::SAFE_INTEGER_MAX);

payloads! {
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
        /// Absent when the work is offered; the session that takes it says so in a frame of its own (FRM-32).
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
        /// Added to what is left.
        required ttl_ms: u64 = LEASE_CHECK;
    }

    /// FRM-36
    AgentQuery {
        required query_text: String = SENTENCE_CHECK;
        required query_id: Uuid = FieldCheck::Uuid4;
        /// Where answers are to be sent.
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
        /// Milliseconds after which the intent is forgotten.
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

object! {
    /// What is to be decided (FRM-40).
    DecisionQuestion {
        required stem: String = SENTENCE_CHECK;
        required options: Vec<DecisionOption> = OPTIONS_CHECK;
        /// Counted from 0.
        required recommended_idx: u64 = FieldCheck::IndexIn("options");
        /// Absent means both open.
        optional hatches: EscapeHatches = FieldCheck::AnyFlagOpen(EscapeHatches::SHAPE);
    }
}

object! {
    /// One of the answers that are offered.
    DecisionOption {
        required label: String = LABEL_CHECK;
        required reasoning: String = SENTENCE_CHECK;
    }
}

object! {
    /// The ways out of the offered answers; at least one stays open (FRM-41).
    EscapeHatches {
        optional free_text: bool = FieldCheck::Bool;
        optional dialogue: bool = FieldCheck::Bool;
    }
}

impl DecisionQuestion {
    /// Whether an answer in one's own words is welcome.
    pub fn allows_free_text(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.free_text)
            .unwrap_or(true)
    }

    /// Whether the question itself may be talked about.
    pub fn allows_dialogue(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.dialogue)
            .unwrap_or(true)
    }
}
