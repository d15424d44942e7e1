//! `POST /heartbeat`: an agent reports that it is online (R-66).

use crate::contract::{self, FieldCheck};
use crate::identity::AgentName;
use crate::market::discover::PresenceStatus;
use crate::{Result, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

wire_object! {
    /// A sign of life.
    Heartbeat, allows unknown, example r#"{"agent_id": "alice@chorus"}"# => {
        /// The agent that reports; the one of the key if absent.
        nullable agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
    }
}

/// The `agent_id` of a heartbeat, if given. The body may be empty.
pub fn parse_heartbeat(body: &[u8]) -> Result<Option<String>> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let heartbeat: Heartbeat = contract::parse_body(body)?;
    Ok(heartbeat.agent_id)
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReply {
    pub agent_id: String,
    pub status: PresenceStatus,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}
