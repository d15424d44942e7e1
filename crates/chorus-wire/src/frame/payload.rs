//! The fifteen payloads: one shape per kind, which is at once the type, the table of checks and what is published (FRM-28…47, R-40).

use super::check::{Check, text, whole};
use super::held::Held;
use super::kind::Kind;
use super::read::{Node, Object};
use super::scope::Scope;
use super::shape::{Field, Shape};
use super::word::words;
use crate::{identity::Handle, limits as most, time::Micros};
use serde::Serialize;
use uuid::Uuid;

words! {
    /// What a broadcast is about.
    EventClass { Merged "merged", Stale "stale", Released "released", Other "other", }
}

words! {
    /// How bad it is.
    Severity { Info "info", Degraded "degraded", Blocked "blocked", }
}

words! {
    /// How soon an intent is to be carried out.
    Urgency { Normal "normal", Urgent "urgent", }
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
            $($(#[$doc])* #[serde(skip_serializing_if = "Held::absent")] pub $field: held!($need $held),)+
        }

        impl $name {
            const SHAPE: &'static Shape = &[
                $(Field { name: stringify!($field), required: is_required!($need), check: $check },)+
            ];

            fn of(object: &Object<'_>) -> Option<Self> {
                Some(Self { $($field: Held::held(object.get(stringify!($field)))?,)+ })
            }
        }

        impl Held for $name {
            fn held(node: Option<&Node<'_>>) -> Option<Self> {
                Self::of(node?.object()?)
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
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$name(_) => Kind::$name),+ }
            }

            pub(super) const fn shape(kind: Kind) -> &'static Shape {
                match kind { $(Kind::$name => $name::SHAPE),+ }
            }

            pub(super) fn of(kind: Kind, object: &Object<'_>) -> Option<Self> {
                match kind { $(Kind::$name => $name::of(object).map(Self::$name)),+ }
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
const SENTENCE: Check = text(1, most::FRAME_TEXT_OCTETS);
const LABEL: Check = text(1, most::FRAME_LABEL_OCTETS);
const SESSION: Check = text(1, most::SESSION_OCTETS);
/// One reference that must be there.
const POINTER: Check = text(1, most::FRAME_ITEM_OCTETS);
const REFERENCE: Check = text(0, most::FRAME_ITEM_OCTETS);
const REFERENCES: Check = Check::List {
    least: 0,
    most: most::FRAME_ITEMS,
    of: &REFERENCE,
};
const SENTENCES: Check = Check::List {
    least: 0,
    most: most::FRAME_ITEMS,
    of: &SENTENCE,
};
const OPTIONS: Check = Check::List {
    least: 2,
    most: 4,
    of: &Check::Object(Choice::SHAPE),
};
const LEASE: Check = whole(1, most::LEASE_MS);
const FROM_ONE: Check = whole(1, most::WHOLE_NUMBER);

payloads! {
    /// FRM-29
    AgentAdvisory {
        required advisory_text: String = SENTENCE;
        optional file_refs: Vec<String> = REFERENCES;
        optional worktree: String = text(0, most::FRAME_PATH_OCTETS);
        optional branch: String = text(0, most::FRAME_LABEL_OCTETS);
    }

    /// FRM-30
    AgentBroadcast {
        required broadcast_text: String = SENTENCE;
        required event_class: EventClass = Check::OneOf(EventClass::TEXTS);
        optional refs: Vec<String> = REFERENCES;
    }

    /// FRM-31
    AgentHandover {
        required previous_session_id: String = SESSION;
        /// Absent when the work is offered; the session that takes it says so in a frame of its own (FRM-32).
        optional next_session_id: String = text(0, most::SESSION_OCTETS);
        required handover_body: String = text(1, most::HANDOVER_OCTETS);
        optional pointer_refs: Vec<String> = REFERENCES;
    }

    /// FRM-33
    AgentLockRequest {
        required resource: String = text(1, most::FRAME_PATH_OCTETS);
        required lease_id: Uuid = Check::Uuid4;
        required ttl_ms: u64 = LEASE;
        optional intent: String = text(0, most::FRAME_TEXT_OCTETS);
    }

    ///
    AgentLockRelease {
        required lease_id: Uuid = Check::Uuid4;
        optional resource: String = text(0, most::FRAME_PATH_OCTETS);
    }

    ///
    AgentLeaseExtend {
        required lease_id: Uuid = Check::Uuid4;
        /// Added to what is left.
        required ttl_ms: u64 = LEASE;
    }

    /// FRM-36
    AgentQuery {
        required query_text: String = SENTENCE;
        required query_id: Uuid = Check::Uuid4;
        /// Where answers are to be sent.
        required response_scope: Scope = Check::Scope;
        required timeout_ms: u64 = FROM_ONE;
    }

    ///
    AgentResponse {
        required query_id: Uuid = Check::Uuid4;
        required response_text: String = SENTENCE;
        required responder_session_id: String = SESSION;
        optional responded_to_frame_id: Uuid = Check::Uuid4;
        optional answer_attempt_idx: u64 = FROM_ONE;
    }

    /// FRM-38
    AgentReturnEvent {
        required return_event_ref: String = text(1, most::FRAME_LABEL_OCTETS);
        optional query_id: Uuid = Check::Uuid4;
        required summary: String = SENTENCE;
    }

    /// FRM-39
    AgentBindingMoment {
        required synopsis: String = SENTENCE;
        required findings: Vec<String> = SENTENCES;
        required recommendations: Vec<String> = SENTENCES;
        required offer: String = SENTENCE;
        required question: Question = Check::Object(Question::SHAPE);
    }

    /// FRM-42
    PeerDiagnosticRequest {
        required symptom: String = SENTENCE;
        required diagnostic_id: Uuid = Check::Uuid4;
        optional substrate_refs: Vec<String> = REFERENCES;
        required severity: Severity = Check::OneOf(Severity::TEXTS);
    }

    ///
    PeerDiagnosticResponse {
        required diagnostic_id: Uuid = Check::Uuid4;
        required finding: String = SENTENCE;
        optional remediation: String = SENTENCE;
        optional substrate_refs: Vec<String> = REFERENCES;
    }

    /// FRM-44
    IntentDeclare {
        required convergence_class: String = Check::Class;
        required payload_ref: String = POINTER;
        required acted_by: Handle = Check::Same("acted_by");
        required drafted_with: String = Check::Same("drafted_with");
        required declared_at: Micros = Check::Instant;
        /// Milliseconds after which the intent is forgotten.
        required ttl: u64 = FROM_ONE;
        required withdrawable: bool = Check::Flag;
        optional urgency: Urgency = Check::OneOf(Urgency::TEXTS);
    }

    /// FRM-45
    IntentWithdraw {
        required convergence_class: String = Check::Class;
        required intent_ref: String = POINTER;
        required withdrawn_at: Micros = Check::Instant;
    }

    /// FRM-46
    FlushExecuted {
        required convergence_class: String = Check::Class;
        required result_ref: String = POINTER;
        optional batch_refs: Vec<String> = REFERENCES;
        required executed_at: Micros = Check::Instant;
    }
}

object! {
    /// What is to be decided (FRM-40).
    Question {
        required stem: String = SENTENCE;
        required options: Vec<Choice> = OPTIONS;
        /// Counted from 0.
        required recommended_idx: u64 = Check::PlaceIn("options");
        /// Absent means both open.
        optional hatches: Hatches = Check::OpenDoor(Hatches::SHAPE);
    }
}

object! {
    /// One of the answers that are offered.
    Choice {
        required label: String = LABEL;
        required reasoning: String = SENTENCE;
    }
}

object! {
    /// The ways out of the offered answers; at least one stays open (FRM-41).
    Hatches {
        optional free_text: bool = Check::Flag;
        optional dialogue: bool = Check::Flag;
    }
}

impl Question {
    /// Whether an answer in one's own words is welcome.
    pub fn takes_free_text(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.free_text)
            .unwrap_or(true)
    }

    /// Whether the question itself may be talked about.
    pub fn takes_dialogue(&self) -> bool {
        self.hatches
            .as_ref()
            .and_then(|hatches| hatches.dialogue)
            .unwrap_or(true)
    }
}
