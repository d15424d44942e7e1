//! Frames: short structured announcements to a scope of live sessions, checked to the letter (FRM-01…113).
//!
//! A text is read once into a tree that borrows from it ([`read`]), held against tables ([`shape`], [`check`]), and only
//! then made into a [`Frame`], which keeps the text as it was submitted for everybody who will hear it.

mod answer;
mod check;
mod discovery;
mod error;
mod filter;
mod held;
mod kind;
pub mod org;
mod parts;
pub mod payload;
mod read;
mod scope;
mod shape;
mod submission;
mod word;

pub use answer::{FrameFailure, Roster, RosterSession, Submitted};
pub use discovery::{capabilities, payload_schema};
pub use error::{FrameCode, FrameError};
pub use filter::{Axis, Clause, Filter};
pub use kind::Kind;
pub use parts::{ComputeLocation, ContextCheck, ENVELOPE_VERSION, FrameDraft, Provenance};
pub use payload::Payload;
pub use scope::{Ident, Role, Scope, org_handle};
pub use submission::Submission;

use crate::{limits, time::Micros};
use check::Setting;
use read::{Node, Object};
use std::{borrow::Cow, ops::Deref, time::Duration};

/// A frame that keeps every rule that needs no hub. Its fields are those of [`FrameDraft`], to be read only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    parts: FrameDraft,
    text: String,
}

impl Deref for Frame {
    type Target = FrameDraft;

    fn deref(&self) -> &FrameDraft {
        &self.parts
    }
}

impl Frame {
    /// Reads a frame on its own, as it comes from a stream or from another hub.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let node = Node::read(text, 0)?;
        let object = node
            .object()
            .ok_or_else(|| FrameError::json("a frame is an object"))?;
        Self::of(text.trim_ascii(), object, &[], None)
    }

    /// R-44, from the version to the payload. `around` are the keys beside the frame that nobody knows.
    fn of(
        text: &str,
        object: &Object<'_>,
        around: &[String],
        now: Option<Micros>,
    ) -> Result<Self, FrameError> {
        let kind = told_kind(object)?;
        if let Some(key) = around.first() {
            return Err(FrameError::unknown(key.clone()));
        }
        let setting = Setting {
            frame: Some(object),
            now,
        };
        shape::hold(parts::SHAPE, object, "", &setting)?;
        let payload = Payload::read(kind, object.get("payload"), &setting)?;
        let parts = FrameDraft::of(object, payload).ok_or(FrameCode::Internal)?;
        Ok(Self {
            parts,
            text: one_line(text).into_owned(),
        })
    }

    /// The JSON exactly as submitted, on one line: what every subscriber gets.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// neither replayed from long ago nor dated ahead. [`Submission::parse_at`] does this at its place in R-44.
    pub fn check_time(&self, now: Micros) -> Result<(), FrameError> {
        match check::is_near(self.created_at, now) {
            true => Ok(()),
            false => Err(FrameError::invalid(
                "created_at",
                "within 24 hours of the hub's clock",
            )),
        }
    }

    /// When its content is stale (FRM-105); without `ttl_ms` that is the recipient's choice.
    pub fn stale_at(&self) -> Option<Micros> {
        self.ttl_ms
            .map(|ttl| self.created_at.plus(Duration::from_millis(ttl)))
    }
}

impl FrameDraft {
    /// Prints the draft and reads it again, so that what a sender made passes the very checks of the hub.
    pub fn check(&self) -> Result<Frame, FrameError> {
        Frame::parse(&self.to_json())
    }

    /// On one line, in the order of the draft.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Payload {
    /// Reads the payload of a kind on its own: what a person or a model wrote before there is a frame around it.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, FrameError> {
        if text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        Self::read(kind, Some(&Node::read(text, 0)?), &Setting::default())
    }

    fn read(
        kind: Kind,
        node: Option<&Node<'_>>,
        setting: &Setting<'_>,
    ) -> Result<Self, FrameError> {
        let shape = Self::shape(kind);
        let ours = |object: &&Object<'_>| {
            shape
                .iter()
                .any(|field| field.required && object.get(field.name).is_some())
        };
        let Some(object) = node.and_then(Node::object).filter(ours) else {
            let message = format!("payload must be an object with the fields of {kind}");
            return Err(FrameError::at(
                FrameCode::PayloadKindMismatch,
                "payload",
                message,
            ));
        };
        shape::hold(shape, object, "payload", setting)?;
        Self::of(kind, object).ok_or_else(|| FrameCode::Internal.into())
    }
}

/// The version and then the kind, before anything else is looked at: they say which rules hold.
fn told_kind(object: &Object<'_>) -> Result<Kind, FrameError> {
    let told = |field: &'static str| {
        let node = object
            .get(field)
            .ok_or_else(|| FrameError::missing(field))?;
        node.text()
            .ok_or_else(|| FrameError::invalid(field, "a string"))
    };
    if told("envelope_version")? != ENVELOPE_VERSION {
        let code = FrameCode::EnvelopeVersionUnsupported;
        return Err(FrameError::at(code, "envelope_version", code.sentence()));
    }
    Kind::parse(told("kind")?).ok_or_else(|| {
        let message = format!("kind must be one of {}", Kind::TEXTS.join(", "));
        FrameError::at(FrameCode::KindUnknown, "kind", message)
    })
}

/// The same JSON without line ends. Inside strings there are none, so all blanks outside them go and nothing else.
fn one_line(text: &str) -> Cow<'_, str> {
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
