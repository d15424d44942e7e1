//! Frames: short structured announcements to a scope of live sessions, parsed strictly (FRM-01…113).
//!
//! A frame is checked against its shape and that of its payload (`contract`). Then it becomes a [`Frame`], which keeps the
//! submitted text for its receivers.

mod discovery;
mod draft;
mod error;
mod filter;
mod grammars;
mod kind;
mod open_item;
pub mod organisation;
pub mod payload;
pub mod redact;
mod reply;
mod scope;
mod submission;

pub use discovery::{describe_capabilities, payload_schema};
pub use draft::{
    ComputeLocation, ContextCheck, ENVELOPE_VERSION, FRAME_SHAPE, FrameDraft, FrameProvenance,
    frame_schema,
};
pub use error::{FrameCode, FrameError};
pub use filter::{FilterAxis, FilterClause, FrameFilter};
pub use grammars::{HANDLE_CHECK, IDENT_CHECK, ORG_CHECK, SCOPE_CHECK};
pub use kind::FrameKind;
pub use open_item::{EndedItem, OpenItem, OpenItemKind, OpenItemOutcome, OpenItems};
pub use payload::FramePayload;
pub use reply::{FrameFailure, RosterSession, SessionRoster, SubmissionReply};
pub use scope::{FrameScope, RoleName, ScopeIdent, org_handle};
pub use submission::{FrameSubmission, SUBMISSION_SHAPE};

use crate::contract::{self, CheckContext, ContractFault, FieldPresence, JsonNode, JsonObject};
use crate::{limits, time::UnixMicros};
use std::{borrow::Cow, ops::Deref, time::Duration};

/// A frame that satisfies every rule that needs no hub. It gives read access to the fields of [`FrameDraft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    draft: FrameDraft,
    text: String,
}

impl Deref for Frame {
    type Target = FrameDraft;

    fn deref(&self) -> &FrameDraft {
        &self.draft
    }
}

impl Frame {
    /// Parses a frame without its submission, as a stream or a peer sends it.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let node = JsonNode::parse(text)?;
        let object = node.as_object().ok_or_else(ContractFault::not_an_object)?;
        Self::from_object(text.trim_ascii(), object, None, None)
    }

    /// Checks everything from the version to the payload, in the order of R-44. `unknown_key` is the first unknown key beside
    /// the frame.
    fn from_object(
        text: &str,
        object: &JsonObject<'_>,
        unknown_key: Option<&str>,
        now: Option<UnixMicros>,
    ) -> Result<Self, FrameError> {
        let kind = read_kind(object)?;
        if let Some(key) = unknown_key {
            return Err(ContractFault::unknown(key).into());
        }
        let context = CheckContext {
            frame: Some(object),
            now,
        };
        contract::check_object(draft::FRAME_SHAPE, object, &context)?;
        let payload = FramePayload::parse_node(kind, object.get("payload"), &context)?;
        let draft = FrameDraft::from_object(object, payload).ok_or(FrameCode::Internal)?;
        Ok(Self {
            draft,
            text: to_one_line(text).into_owned(),
        })
    }

    /// The JSON as submitted, on one line, as every receiver gets it.
    pub fn submitted_json(&self) -> &str {
        &self.text
    }

    /// Checks that the frame is neither replayed from long ago nor dated ahead. [`FrameSubmission::parse_at`]
    /// includes this check, in the order of R-44.
    pub fn check_time(&self, now: UnixMicros) -> Result<(), FrameError> {
        match grammars::is_within_clock_skew(self.created_at, now) {
            true => Ok(()),
            false => Err(FrameError::invalid_field(
                "created_at",
                "within 24 hours of the hub's clock",
            )),
        }
    }

    /// When a receiver treats the frame as stale: after its `ttl_ms`, or after a default horizon (FRM-11). A lock, a binding
    /// moment and a handover say themselves how long they are valid.
    pub fn expires_for_receiver_at(&self) -> Option<UnixMicros> {
        match self.kind() {
            FrameKind::AgentLockRequest
            | FrameKind::AgentLeaseExtend
            | FrameKind::AgentBindingMoment
            | FrameKind::AgentHandover => self.stale_at(),
            FrameKind::AgentAdvisory
            | FrameKind::AgentBroadcast
            | FrameKind::AgentLockRelease
            | FrameKind::AgentQuery
            | FrameKind::AgentResponse
            | FrameKind::AgentReturnEvent
            | FrameKind::PeerDiagnosticRequest
            | FrameKind::PeerDiagnosticResponse
            | FrameKind::IntentDeclare
            | FrameKind::IntentWithdraw
            | FrameKind::FlushExecuted => {
                let default = self
                    .created_at
                    .saturating_add(limits::FRAME_DEFAULT_HORIZON);
                Some(self.stale_at().unwrap_or(default))
            }
        }
    }

    /// Whether a receiver drops the frame (FRM-11, FRM-105).
    pub fn is_stale_for_receiver(&self, now: UnixMicros) -> bool {
        self.expires_for_receiver_at().is_some_and(|at| at < now)
    }

    /// When the content becomes stale (FRM-105); without `ttl_ms` the receiver decides.
    pub fn stale_at(&self) -> Option<UnixMicros> {
        self.ttl_ms
            .map(|ttl| self.created_at.saturating_add(Duration::from_millis(ttl)))
    }
}

impl FrameDraft {
    /// A frame is the text that its receivers get, so the draft is printed, and the text is checked as the hub checks it.
    pub fn to_frame(&self) -> Result<Frame, FrameError> {
        Frame::parse(&self.to_json())
    }

    /// The JSON on one line, with the fields in the order of the draft.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl FramePayload {
    /// Parses a payload without a frame, as a person or a model wrote it.
    pub fn parse(kind: FrameKind, text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        Self::parse_node(
            kind,
            Some(&JsonNode::parse(text)?),
            &CheckContext::default(),
        )
    }

    fn parse_node(
        kind: FrameKind,
        node: Option<&JsonNode<'_>>,
        context: &CheckContext<'_>,
    ) -> Result<Self, FrameError> {
        let shape = Self::shape_of_kind(kind);
        let has_required_field = |object: &&JsonObject<'_>| {
            shape.fields.iter().any(|field| {
                field.presence == FieldPresence::Required && object.get(field.name).is_some()
            })
        };
        let Some(object) = node
            .and_then(JsonNode::as_object)
            .filter(has_required_field)
        else {
            let message = format!("payload must be an object with the fields of {kind}");
            return Err(FrameError::at_field(
                FrameCode::PayloadKindMismatch,
                "payload",
                message,
            ));
        };
        contract::check_object(shape, object, context).map_err(|fault| fault.inside("payload"))?;
        Self::from_object(kind, object).ok_or_else(|| FrameCode::Internal.into())
    }
}

/// Reads the version and then the kind, before anything else: they decide which rules apply.
fn read_kind(object: &JsonObject<'_>) -> Result<FrameKind, FrameError> {
    let read_string = |field: &'static str| {
        let node = object
            .get(field)
            .ok_or_else(|| ContractFault::missing(field))?;
        node.as_text()
            .ok_or_else(|| FrameError::invalid_field(field, "a string"))
    };
    if read_string("envelope_version")? != ENVELOPE_VERSION {
        let code = FrameCode::EnvelopeVersionUnsupported;
        return Err(FrameError::at_field(
            code,
            "envelope_version",
            code.sentence(),
        ));
    }
    FrameKind::parse(read_string("kind")?).ok_or_else(|| {
        let message = format!("kind must be one of {}", FrameKind::TEXTS.join(", "));
        FrameError::at_field(FrameCode::KindUnknown, "kind", message)
    })
}

/// Removes the whitespace between tokens if the JSON has line breaks. JSON strings contain no raw line breaks, so strings
/// stay as they are.
fn to_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut in_string = false;
    let mut escaped = false;
    let is_kept = |c: &char| {
        let is_blank = !in_string && matches!(c, ' ' | '\t' | '\n' | '\r');
        in_string ^= *c == '"' && !escaped;
        escaped = in_string && *c == '\\' && !escaped;
        !is_blank
    };
    Cow::Owned(text.chars().filter(is_kept).collect())
}
