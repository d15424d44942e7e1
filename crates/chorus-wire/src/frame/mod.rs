//! Frames: short structured announcements to a scope of live sessions, checked to the letter (FRM-01…113).
//!
//! A text is read once into a tree that borrows from it ([`read`]), held against tables ([`shape`], [`check`]), and only
//! then made into a [`Frame`], which keeps the text as it was submitted for everybody who will hear it.

mod discovery;
mod draft;
mod error;
mod field_check;
mod filter;
mod from_node;
mod json_tree;
mod kind;
mod object_shape;
pub mod organisation;
pub mod payload;
mod reply;
mod scope;
mod string_enum;
mod submission;

pub use discovery::{describe_capabilities, payload_schema};
pub use draft::{ComputeLocation, ContextCheck, ENVELOPE_VERSION, FrameDraft, FrameProvenance};
pub use error::{FrameCode, FrameError};
pub use filter::{FilterAxis, FilterClause, FrameFilter};
pub use kind::FrameKind;
pub use payload::Payload;
pub use reply::{FrameFailure, RosterSession, SessionRoster, SubmissionReply};
pub use scope::{FrameScope, RoleName, ScopeIdent, org_handle};
pub use submission::FrameSubmission;

use crate::{limits, time::UnixMicros};
use field_check::CheckContext;
use json_tree::{JsonNode, JsonObject};
use std::{borrow::Cow, ops::Deref, time::Duration};

/// A frame that keeps every rule that needs no hub. Its fields are those of [`FrameDraft`], to be read only.
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
    /// Reads a frame on its own, as it comes from a stream or from another hub.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let node = JsonNode::parse(text, 0)?;
        let object = node
            .as_object()
            .ok_or_else(|| FrameError::invalid_json("a frame is an object"))?;
        Self::from_object(text.trim_ascii(), object, &[], None)
    }

    /// R-44, from the version to the payload. `around` are the keys beside the frame that nobody knows.
    fn from_object(
        text: &str,
        object: &JsonObject<'_>,
        unknown_keys: &[String],
        now: Option<UnixMicros>,
    ) -> Result<Self, FrameError> {
        let kind = read_kind(object)?;
        if let Some(key) = unknown_keys.first() {
            return Err(FrameError::unknown_field(key.clone()));
        }
        let context = CheckContext {
            frame: Some(object),
            now,
        };
        object_shape::check_object(draft::FRAME_SHAPE, object, "", &context)?;
        let payload = Payload::parse_node(kind, object.get("payload"), &context)?;
        let draft = FrameDraft::from_object(object, payload).ok_or(FrameCode::Internal)?;
        Ok(Self {
            draft,
            text: to_one_line(text).into_owned(),
        })
    }

    /// The JSON exactly as submitted, on one line: what every subscriber gets.
    pub fn submitted_json(&self) -> &str {
        &self.text
    }

    /// neither replayed from long ago nor dated ahead. [`Submission::parse_at`] does this at its place in R-44.
    pub fn check_time(&self, now: UnixMicros) -> Result<(), FrameError> {
        match field_check::is_within_clock_skew(self.created_at, now) {
            true => Ok(()),
            false => Err(FrameError::invalid_field(
                "created_at",
                "within 24 hours of the hub's clock",
            )),
        }
    }

    /// When its content is stale (FRM-105); without `ttl_ms` that is the recipient's choice.
    pub fn stale_at(&self) -> Option<UnixMicros> {
        self.ttl_ms
            .map(|ttl| self.created_at.saturating_add(Duration::from_millis(ttl)))
    }
}

impl FrameDraft {
    /// Prints the draft and reads it again, so that what a sender made passes the very checks of the hub.
    pub fn to_frame(&self) -> Result<Frame, FrameError> {
        Frame::parse(&self.to_json())
    }

    /// On one line, in the order of the draft.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Payload {
    /// Reads the payload of a kind on its own: what a person or a model wrote before there is a frame around it.
    pub fn parse(kind: FrameKind, text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        Self::parse_node(
            kind,
            Some(&JsonNode::parse(text, 0)?),
            &CheckContext::default(),
        )
    }

    fn parse_node(
        kind: FrameKind,
        node: Option<&JsonNode<'_>>,
        context: &CheckContext<'_>,
    ) -> Result<Self, FrameError> {
        let shape = Self::shape(kind);
        let has_required_field = |object: &&JsonObject<'_>| {
            shape
                .iter()
                .any(|field| field.required && object.get(field.name).is_some())
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
        object_shape::check_object(shape, object, "payload", context)?;
        Self::of(kind, object).ok_or_else(|| FrameCode::Internal.into())
    }
}

/// The version and then the kind, before anything else is looked at: they say which rules hold.
fn read_kind(object: &JsonObject<'_>) -> Result<FrameKind, FrameError> {
    let read_string = |field: &'static str| {
        let node = object
            .get(field)
            .ok_or_else(|| FrameError::missing_field(field))?;
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

/// The same JSON without line ends. Inside strings there are none, so all blanks outside them go and nothing else.
fn to_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut quoted = false;
    let mut escaped = false;
    let kept = |c: &char| {
        let blank = !quoted && matches!(c, ' ' | '\t' | '\n' | '\r');
        quoted ^= *c == '"' && !escaped;
        escaped = quoted && *c == '\\' && !escaped;
        !blank
    };
    Cow::Owned(text.chars().filter(kept).collect())
}
