//! Replies of the frame protocol: submission, roster and errors (FRM-66, R-41, R-50).

use super::error::FrameCode;
use crate::time::UnixMicros;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The answer to `POST /frames`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmissionReply {
    pub frame_id: Uuid,
    /// How many live sessions received the frame. Outside the sender's own handle and organisations it is coarse: 0, 1
    /// (some) or 10 (many).
    pub recipient_count: u64,
    /// For a lock, a decision and a handover: whether the hub keeps it until it ends. False when the handle has
    /// as many open items as it may have, and for the extension of a lease that the hub does not keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// When the kept item ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub kept_until: Option<UnixMicros>,
    /// Whether the count may be coarse (FRM-108). The answer does not say it; it follows from the scope.
    #[serde(skip)]
    pub coarse: bool,
}

impl SubmissionReply {
    /// How many sessions received the frame, in words: a coarse count is a range.
    pub fn describe_count(&self) -> String {
        match (self.recipient_count, self.coarse) {
            (0, _) => "no session".to_owned(),
            (1, true) => "1 to 9 sessions".to_owned(),
            (10, true) => "10 sessions or more".to_owned(),
            (1, false) => "1 session".to_owned(),
            (many, _) => format!("{many} sessions"),
        }
    }
}

/// The live sessions of a handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionRoster {
    #[schema(example = "~alice")]
    pub handle: String,
    pub sessions: Vec<RosterSession>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RosterSession {
    #[schema(example = "cc-editor")]
    pub instrument: String,
    #[schema(example = "s1")]
    pub session: String,
    #[schema(example = "cc")]
    pub tool: String,
    /// When the stream was opened.
    #[schema(value_type = String, format = DateTime)]
    pub since: UnixMicros,
    /// The filter of the session; empty matches every frame.
    #[schema(example = "kind:agent_advisory")]
    pub filter: String,
}

/// The error reply on every path of the frame protocol (FRM-83, R-45).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FrameFailure {
    #[schema(value_type = FrameCode)]
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "payload.advisory_text")]
    pub field: Option<String>,
    pub message: String,
}
