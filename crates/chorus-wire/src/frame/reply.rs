//! What the hub answers to a session: how far a frame went, and who is there (FRM-66, R-41, R-50).

use super::error::FrameCode;
use crate::time::UnixMicros;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The answer to `POST /frames`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmissionReply {
    pub frame_id: Uuid,
    /// To how many live sessions it was emitted; towards others than oneself and one's organisations 0, 1 (some) or 10 (many).
    pub recipient_count: u64,
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
    /// When its stream was opened.
    #[schema(value_type = String, format = DateTime)]
    pub since: UnixMicros,
    /// What it hears; empty is everything.
    #[schema(example = "kind:agent_advisory")]
    pub filter: String,
}

/// The form of a refusal on every path of frames; [`super::FrameError`] prints it (FRM-83, R-45).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FrameFailure {
    #[schema(example = "field-invalid")]
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "payload.advisory_text")]
    pub field: Option<String>,
    pub message: String,
}

impl FrameFailure {
    /// The code, if this program knows it.
    pub fn known_code(&self) -> Option<FrameCode> {
        FrameCode::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == self.code)
    }
}
