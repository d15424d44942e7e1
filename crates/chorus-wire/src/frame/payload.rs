//! The fifteen payloads. One definition per kind gives its type, its checks and its published schema (FRM-28…47, R-40).

use super::grammars::{
    CONVERGENCE_CLASS_CHECK, INSTANT_CHECK, RECOMMENDED_INDEX_CHECK, SAME_ACTED_BY_CHECK,
    SAME_DRAFTED_WITH_CHECK, SCOPE_CHECK, UUID4_CHECK,
};
use super::kind::FrameKind;
use super::scope::FrameScope;
use crate::contract::{
    ContractFault, FieldCheck, JsonNode, JsonObject, ObjectRule, ObjectShape, WireObject,
    integer_between, list_of, octets,
};
use crate::string_enum::string_enum;
use crate::{identity::Handle, limits, time::UnixMicros, wire_object};
use serde::Serialize;
use serde_json::json;
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

/// Defines the payload of each kind, and the enum of all of them.
macro_rules! payload_kinds {
    ($($(#[doc = $about:literal])* $name:ident { $($fields:tt)+ })+) => {
        $(wire_object! { $(#[doc = $about])* $name, refuses unknown => { $($fields)+ } })+

        /// The payload of a frame. Its variant is the frame's kind.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum FramePayload { $($name($name)),+ }

        impl FramePayload {
            pub const fn kind(&self) -> FrameKind {
                match self { $(Self::$name(_) => FrameKind::$name),+ }
            }

            pub const fn shape_of_kind(kind: FrameKind) -> &'static ObjectShape {
                match kind { $(FrameKind::$name => <$name as WireObject>::SHAPE),+ }
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
const SENTENCE_CHECK: FieldCheck = octets(1, limits::FRAME_TEXT_OCTETS);
const LABEL_CHECK: FieldCheck = octets(1, limits::FRAME_LABEL_OCTETS);
const SESSION_ID_CHECK: FieldCheck = octets(1, limits::SESSION_OCTETS);
/// A required reference.
const POINTER_CHECK: FieldCheck = octets(1, limits::FRAME_ITEM_OCTETS);
const REFERENCE_CHECK: FieldCheck = octets(0, limits::FRAME_ITEM_OCTETS);
const REFERENCES_CHECK: FieldCheck = list_of(limits::FRAME_ITEMS, &REFERENCE_CHECK);
const SENTENCES_CHECK: FieldCheck = list_of(limits::FRAME_ITEMS, &SENTENCE_CHECK);
const OPTIONS_CHECK: FieldCheck = FieldCheck::List {
    min: 2,
    max: 4,
    of: &FieldCheck::Object(DecisionOption::SHAPE),
};
const LEASE_CHECK: FieldCheck = integer_between(1, limits::LEASE_MAX_MS);
const POSITIVE_INTEGER_CHECK: FieldCheck = integer_between(1, limits::SAFE_INTEGER_MAX);

// FRM-29…33, FRM-36, FRM-38, FRM-39, FRM-42, FRM-44…46; R-40 for the kinds that the document names without their fields.
payload_kinds! {
    /// Tells other sessions something that they should know and need not answer.
    AgentAdvisory {
        /// What to tell, in a sentence or two. No secrets: every session in the scope reads it.
        required advisory_text: String = SENTENCE_CHECK;
        /// Files that it is about.
        optional file_refs: Vec<String> = REFERENCES_CHECK;
        /// The working tree that it is about.
        optional worktree: String = octets(0, limits::FRAME_PATH_OCTETS);
        /// The branch that it is about.
        optional branch: String = octets(0, limits::FRAME_LABEL_OCTETS);
    }

    /// Announces an event.
    AgentBroadcast {
        /// What happened.
        required broadcast_text: String = SENTENCE_CHECK;
        /// The class of the event.
        required event_class: EventClass = FieldCheck::OneOf(EventClass::TEXTS);
        /// What it is about: commits, tickets, files.
        optional refs: Vec<String> = REFERENCES_CHECK;
    }

    /// Hands work over to another session.
    AgentHandover {
        /// The session that hands over.
        required previous_session_id: String = SESSION_ID_CHECK;
        /// The session that takes over. Absent in an offer; the session that accepts sends a handover of its own.
        optional next_session_id: String = octets(0, limits::SESSION_OCTETS);
        /// What the next session must know.
        required handover_body: String = octets(1, limits::HANDOVER_OCTETS);
        /// What to read.
        optional pointer_refs: Vec<String> = REFERENCES_CHECK;
    }

    /// Claims a resource for a time.
    AgentLockRequest {
        /// What is claimed, such as a file or a service.
        required resource: String = octets(1, limits::FRAME_PATH_OCTETS);
        /// A new UUID that names the claim; extending and releasing repeat it.
        required lease_id: Uuid = UUID4_CHECK;
        /// How long the claim holds, in milliseconds.
        required ttl_ms: u64 = LEASE_CHECK;
        /// Why.
        optional intent: String = octets(0, limits::FRAME_TEXT_OCTETS);
    }

    /// Ends a claim.
    AgentLockRelease {
        /// The claim.
        required lease_id: Uuid = UUID4_CHECK;
        /// What was claimed.
        optional resource: String = octets(0, limits::FRAME_PATH_OCTETS);
    }

    /// Extends a claim.
    AgentLeaseExtend {
        /// The claim.
        required lease_id: Uuid = UUID4_CHECK;
        /// Added to what remains of the claim, in milliseconds.
        required ttl_ms: u64 = LEASE_CHECK;
    }

    /// Asks other sessions a question.
    AgentQuery {
        /// The question.
        required query_text: String = SENTENCE_CHECK;
        /// A new UUID that names the question; responses repeat it.
        required query_id: Uuid = UUID4_CHECK;
        /// The scope to which responses go.
        required response_scope: FrameScope = SCOPE_CHECK;
        /// How long the sender waits, in milliseconds.
        required timeout_ms: u64 = POSITIVE_INTEGER_CHECK;
    }

    /// Answers a question.
    AgentResponse {
        /// The question.
        required query_id: Uuid = UUID4_CHECK;
        /// The answer.
        required response_text: String = SENTENCE_CHECK;
        /// The session that answers.
        required responder_session_id: String = SESSION_ID_CHECK;
        /// The frame that asked.
        optional responded_to_frame_id: Uuid = UUID4_CHECK;
        /// 1 for the first answer of this session, one more for each further one.
        optional answer_attempt_idx: u64 = POSITIVE_INTEGER_CHECK;
    }

    /// Announces that a result is back.
    AgentReturnEvent {
        /// What returned.
        required return_event_ref: String = octets(1, limits::FRAME_LABEL_OCTETS);
        /// The question that led to it.
        optional query_id: Uuid = UUID4_CHECK;
        /// The result in short.
        required summary: String = SENTENCE_CHECK;
    }

    /// Asks a person for a decision.
    AgentBindingMoment {
        /// The matter in short.
        required synopsis: String = SENTENCE_CHECK;
        /// What was found.
        required findings: Vec<String> = SENTENCES_CHECK;
        /// What the sender recommends.
        required recommendations: Vec<String> = SENTENCES_CHECK;
        /// What the sender offers to do.
        required offer: String = SENTENCE_CHECK;
        /// The decision that is asked for.
        required question: DecisionQuestion = FieldCheck::Object(DecisionQuestion::SHAPE);
    }

    /// Asks other sessions whether they see the same symptom.
    PeerDiagnosticRequest {
        /// What is wrong. No secrets; choose the narrowest scope that will do.
        required symptom: String = SENTENCE_CHECK;
        /// A new UUID that names the request; responses repeat it.
        required diagnostic_id: Uuid = UUID4_CHECK;
        /// Where it was seen.
        optional substrate_refs: Vec<String> = REFERENCES_CHECK;
        /// How severe it is.
        required severity: DiagnosticSeverity = FieldCheck::OneOf(DiagnosticSeverity::TEXTS);
    }

    /// Answers a diagnostic request.
    PeerDiagnosticResponse {
        /// The request.
        required diagnostic_id: Uuid = UUID4_CHECK;
        /// What was found. No secrets; choose the narrowest scope that will do.
        required finding: String = SENTENCE_CHECK;
        /// What helps.
        optional remediation: String = SENTENCE_CHECK;
        /// Where it was seen.
        optional substrate_refs: Vec<String> = REFERENCES_CHECK;
    }

    /// Declares what the sender intends to do.
    IntentDeclare {
        /// The class of things that converge, such as repo:pull-request.
        required convergence_class: String = CONVERGENCE_CLASS_CHECK;
        /// What is intended.
        required payload_ref: String = POINTER_CHECK;
        /// The same as the frame's.
        required acted_by: Handle = SAME_ACTED_BY_CHECK;
        /// The same as the frame's.
        required drafted_with: String = SAME_DRAFTED_WITH_CHECK;
        /// When it was declared.
        required declared_at: UnixMicros = INSTANT_CHECK;
        /// Milliseconds after which the intent expires.
        required ttl: u64 = POSITIVE_INTEGER_CHECK;
        /// Whether it may be withdrawn.
        required withdrawable: bool = FieldCheck::Bool;
        /// How soon it should be carried out.
        optional urgency: IntentUrgency = FieldCheck::OneOf(IntentUrgency::TEXTS);
    }

    /// Withdraws an intent.
    IntentWithdraw {
        /// The class of the intent.
        required convergence_class: String = CONVERGENCE_CLASS_CHECK;
        /// The intent.
        required intent_ref: String = POINTER_CHECK;
        /// When it was withdrawn.
        required withdrawn_at: UnixMicros = INSTANT_CHECK;
    }

    /// Announces that what was intended has been carried out.
    FlushExecuted {
        /// The class of the intents.
        required convergence_class: String = CONVERGENCE_CLASS_CHECK;
        /// The result.
        required result_ref: String = POINTER_CHECK;
        /// What was carried out.
        optional batch_refs: Vec<String> = REFERENCES_CHECK;
        /// When it was carried out.
        required executed_at: UnixMicros = INSTANT_CHECK;
    }
}

wire_object! {
    /// The decision that is asked for.
    DecisionQuestion, refuses unknown => {
        /// The question.
        required stem: String = SENTENCE_CHECK;
        /// The answers that are offered.
        required options: Vec<DecisionOption> = OPTIONS_CHECK;
        /// Which of the options the sender recommends, counted from 0.
        required recommended_idx: u64 = RECOMMENDED_INDEX_CHECK;
        /// The alternatives to the options. If absent, both are open.
        optional hatches: EscapeHatches = FieldCheck::Object(EscapeHatches::SHAPE);
    }
}

wire_object! {
    /// One of the offered answers.
    DecisionOption, refuses unknown => {
        /// The answer.
        required label: String = LABEL_CHECK;
        /// Why one would choose it.
        required reasoning: String = SENTENCE_CHECK;
    }
}

/// FRM-41
const ONE_HATCH_OPEN: ObjectRule = ObjectRule {
    find_fault: |hatches| {
        let is_closed = |name: &str| hatches.get(name).and_then(JsonNode::as_bool) == Some(false);
        (is_closed("free_text") && is_closed("dialogue")).then(|| {
            ContractFault::invalid(
                "",
                "an object in which free_text and dialogue are not both false",
            )
        })
    },
    describe: |schema, _| {
        schema["not"] = json!({
            "properties": {"free_text": {"const": false}, "dialogue": {"const": false}},
            "required": ["free_text", "dialogue"],
        });
    },
};

wire_object! {
    /// The alternatives to the offered answers; at least one stays open.
    EscapeHatches, refuses unknown, rules [ONE_HATCH_OPEN] => {
        /// Whether the receiver may answer in its own words; true if absent.
        optional free_text: bool = FieldCheck::Bool;
        /// Whether the receiver may discuss the question first; true if absent.
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
