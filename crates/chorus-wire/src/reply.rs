//! The success and failure replies of the envelope and transport protocols, and reply bodies without a module of their
//! own (TRN-38…40, R-35).

use crate::reach::AgentReach;
use crate::{Error, ErrorCode, agent_card::AgentCard, secret::Secret, time::UnixMicros};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplyMetadata {
    #[schema(example = "2026-03-20T10:00:00.000Z")]
    pub timestamp: String,
    /// Where a list continues: give it back as `after`, or as `since` for messages. Absent on the last page, and where there is
    /// no list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "~~1000")]
    pub next: Option<String>,
}

impl ReplyMetadata {
    pub fn stamped_at(now: UnixMicros) -> Self {
        Self {
            timestamp: now.to_rfc3339_millis(),
            next: None,
        }
    }
}

/// `{"success":true,"data":…,"metadata":{…}}`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SuccessReply<T> {
    pub success: bool,
    pub data: T,
    pub metadata: ReplyMetadata,
}

/// `{"success":false,"error":{…},"metadata":{…}}`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureReply {
    pub success: bool,
    pub error: FailureBody,
    pub metadata: ReplyMetadata,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureBody {
    #[schema(value_type = ErrorCode)]
    pub code: String,
    #[schema(example = "sender_id is required")]
    pub message: String,
}

impl FailureReply {
    pub fn new(error: &Error, now: UnixMicros) -> Self {
        let error = FailureBody {
            code: error.code.as_str().into(),
            message: error.message.clone(),
        };
        Self {
            success: false,
            error,
            metadata: ReplyMetadata::stamped_at(now),
        }
    }
}

/// An error in the form of the jobs document.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MarketFailure {
    #[schema(value_type = ErrorCode)]
    pub error_code: String,
    pub error_message: String,
}

/// A registration record (TRN-07, TRN-34, R-32). Only the agent itself and operators see `endpoint`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentRecord {
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_card: Option<AgentCard>,
    #[schema(value_type = String, format = DateTime)]
    pub registered_at: UnixMicros,
    // another hub's record may lack this field and those after it.
    #[serde(default)]
    #[schema(required = true)]
    pub online: bool,
    /// How a message reaches the agent now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = AgentReach, required = true)]
    pub reach: Option<AgentReach>,
    #[serde(default)]
    #[schema(required = true)]
    pub has_endpoint: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "~alice")]
    pub handle: Option<String>,
    /// false: the name is under another host than the hub's own, and the hub has not verified it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_verified: Option<bool>,
}

/// `data` of a registration. `api_key` is present only in the reply that issues the key; `status` and
/// `reputation_score` only when the request has fields of the market.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RegistrationReply {
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, example = "ca_…")]
    pub api_key: Option<Secret>,
    pub registration: AgentRecord,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reputation_score: Option<f64>,
}

/// `data` of `POST /agents`: the registration record, then what a registration answers elsewhere. `api_key` is present
/// only for a new agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OperatorRegistrationReply {
    #[serde(flatten)]
    pub record: AgentRecord,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, example = "ca_…")]
    pub api_key: Option<Secret>,
    pub registration: AgentRecord,
}

impl From<RegistrationReply> for OperatorRegistrationReply {
    fn from(reply: RegistrationReply) -> Self {
        Self {
            record: reply.registration.clone(),
            api_key: reply.api_key,
            registration: reply.registration,
        }
    }
}

/// The reply to a registration in the form of the market.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MarketRegistrationReply {
    pub status: String,
    pub agent_id: String,
    pub reputation_score: f64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, example = "ca_…")]
    pub api_key: Option<Secret>,
}

/// A row of `GET /discover` (TRN-59).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DirectoryRow {
    pub agent_id: String,
    #[schema(required = true)]
    pub culture: Option<String>,
    pub languages: Vec<String>,
    pub online: bool,
    /// How a message reaches the agent now.
    // another hub's row may lack it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = AgentReach, required = true)]
    pub reach: Option<AgentReach>,
    /// false: the name is under another host than the hub's own, and the hub has not verified it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_verified: Option<bool>,
}

/// `data` of `DELETE /agents/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentDeleted {
    pub agent_id: String,
    pub deleted: bool,
}

/// `data` of `POST /agent/session`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionToken {
    #[schema(value_type = String, example = "cs_…")]
    pub session_token: Secret,
    pub expires_in_seconds: u64,
}

/// `data` of `POST /console/links`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConsoleLink {
    /// For the fragment of the console's address: `/console#/link/{link_token}`.
    #[schema(value_type = String, example = "cl_…")]
    pub link_token: Secret,
    pub expires_in_seconds: u64,
}

/// `data` of `POST /console/session`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConsoleSession {
    /// A credential for the `Authorization` header.
    #[schema(value_type = String, example = "cc_…")]
    pub session_token: Secret,
    pub expires_in_seconds: u64,
}

/// `data` of `DELETE /console/session`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConsoleSessionEnded {
    /// Whether the request came with a console session.
    pub ended: bool,
}

/// `data` of `POST /agent/endpoint-secret`. The secret is shown only here.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointSecret {
    #[schema(value_type = String, example = "whsec_…")]
    pub endpoint_secret: Secret,
}

/// The JSON form of `GET /invite/{id}`, for agents (lesson 5).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InviteCard {
    pub agent_id: String,
    pub hub: String,
    #[schema(required = true)]
    pub culture: Option<String>,
    pub online: bool,
    pub exists: bool,
    pub connect_instructions: String,
    /// false: the name is under another host than the hub's own, and the hub has not verified it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_verified: Option<bool>,
}

/// A registration invite, as operators see it. `code` is present only in the reply that creates it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InviteRecord {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>)]
    pub code: Option<Secret>,
    pub label: String,
    pub uses: u64,
    #[schema(required = true)]
    pub max_uses: Option<u64>,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub expires_at: Option<UnixMicros>,
    pub revoked: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
}

/// `data` of `GET /health` (lesson 6).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HealthReport {
    #[schema(example = "ok")]
    pub status: String,
    pub version: String,
    pub uptime_seconds: u64,
    pub invite_gating: bool,
    pub agents_registered: u64,
    pub messages_delivered: u64,
    pub messages_queued: u64,
    pub messages_failed: u64,
    pub inbox_connections: u64,
    pub messages_stored: u64,
}

/// A row of `GET /activity` (lesson 10).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ActivityRow {
    pub id: u64,
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: UnixMicros,
    pub data: serde_json::Value,
}
