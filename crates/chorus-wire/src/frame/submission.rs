//! The body of `POST /frames`: a frame and its scope (R-41, R-53).

use super::Frame;
use super::draft::FRAME_SHAPE;
use super::error::{FrameCode, FrameError};
use super::grammars::SCOPE_CHECK;
use super::scope::{self, FrameScope};
use crate::contract::{
    self, ContractFault, FieldCheck, FieldPresence, FieldShape, ObjectShape, UnknownFields,
};
use crate::{limits, time::UnixMicros};

/// A well-formed frame with its scope. Errors of the scope are reported after those of the sender's identity (R-44).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSubmission {
    pub frame: Frame,
    scope: Result<FrameScope, FrameError>,
}

impl FrameSubmission {
    /// Checks everything except the plausibility of `created_at`.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        Self::parse_body(body, None)
    }

    /// Also checks `created_at` against the hub's clock, in the order of R-44.
    pub fn parse_at(body: &[u8], now: UnixMicros) -> Result<Self, FrameError> {
        Self::parse_body(body, Some(now))
    }

    /// The scope; by default the recipient's handle (R-41). It is an error if the scope is malformed or addresses another
    /// handle than `recipient_handle` (FRM-57). Call it after the check of the sender's identity.
    pub fn scope(&self) -> Result<&FrameScope, FrameError> {
        let scope = self.scope.as_ref().map_err(Clone::clone)?;
        if scope.addressed_handle() == &self.frame.recipient_handle {
            return Ok(scope);
        }
        let message = format!(
            "the scope names {}, recipient_handle another",
            scope.addressed_handle()
        );
        Err(FrameError::at_field(
            FrameCode::ScopeUnauthorised,
            "scope",
            message,
        ))
    }

    /// Formats the body that a sender posts.
    pub fn format_json(scope: Option<&FrameScope>, frame: &Frame) -> String {
        match scope {
            Some(scope) => format!(
                r#"{{"scope":"{scope}","frame":{}}}"#,
                frame.submitted_json()
            ),
            None => format!(r#"{{"frame":{}}}"#, frame.submitted_json()),
        }
    }

    fn parse_body(body: &[u8], now: Option<UnixMicros>) -> Result<Self, FrameError> {
        if body.len() > limits::FRAME_BODY_BYTES {
            return Err(FrameError::too_large());
        }
        let root = contract::parse_root(body)?;
        let fields = root.as_object().ok_or(FrameCode::Internal)?;
        let is_unknown = |key: &str| {
            SUBMISSION_SHAPE
                .fields
                .iter()
                .all(|field| field.name != key)
        };
        let unknown_key = fields
            .0
            .iter()
            .map(|(key, _)| &**key)
            .find(|key| is_unknown(key));
        let prefer_unknown = |fault: ContractFault| match unknown_key {
            Some(key) => FrameError::from(ContractFault::unknown(key)),
            None => fault.into(),
        };
        let frame = fields
            .get("frame")
            .ok_or_else(|| prefer_unknown(ContractFault::missing("frame")))?;
        if frame.text.len() > limits::FRAME_BYTES {
            return Err(FrameError::too_large());
        }
        let object = frame
            .as_object()
            .ok_or_else(|| prefer_unknown(ContractFault::invalid("frame", "an object")))?;
        let frame = Frame::from_object(frame.text, object, unknown_key, now)?;
        let scope = match fields.get("scope") {
            Some(node) => node
                .as_text()
                .and_then(FrameScope::parse)
                .ok_or_else(|| FrameError::invalid_field("scope", scope::SCOPE_REQUIREMENT)),
            None => Ok(FrameScope::Handle(frame.recipient_handle.clone())),
        };
        Ok(Self { frame, scope })
    }
}

crate::impl_to_schema!(FrameSubmission, SUBMISSION_SHAPE.name);

/// The body. Its faults are found in the order of R-44, not in that of the shape.
pub const SUBMISSION_SHAPE: &ObjectShape = &ObjectShape {
    name: "FrameSubmission",
    about: "A frame and the sessions that it is for.",
    fields: &[
        FieldShape {
            name: "scope",
            presence: FieldPresence::Optional,
            about: "The sessions that the frame is for; all sessions of recipient_handle if absent. Choose the narrowest.",
            check: SCOPE_CHECK,
        },
        FieldShape {
            name: "frame",
            presence: FieldPresence::Required,
            about: "The frame itself; receivers get it as it was written.",
            check: FieldCheck::Object(FRAME_SHAPE),
        },
    ],
    unknown: UnknownFields::Refused,
    rules: &[],
    example: r#"{"scope":"~alice/cc-*","frame":{"envelope_version":"1.0","frame_id":"3b241101-e2bb-4255-8caf-4136c566a962","kind":"agent_advisory",
        "sender_handle":"~alice","recipient_handle":"~alice","created_at":"2026-02-11T14:15:09Z",
        "payload":{"advisory_text":"The API has moved to v2."},"acted_by":"~alice","drafted_with":"~cc-editor@1.2",
        "provenance_compute_location":"local-only","provenance_method":["llm"],"provenance_context_check":"passed",
        "provenance_basis":"commit 4f2a"}}"#,
};
