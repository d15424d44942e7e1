//! `POST /heartbeat`: an agent reports that it is online.

use crate::market::discover::PresenceStatus;
use crate::{Result, json, time::UnixMicros};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The `agent_id` of a heartbeat, if given. Other fields are ignored: clients send more than the hub needs.
pub fn parse_heartbeat(body: &[u8]) -> Result<Option<String>> {
    let text = json::decode_utf8(body)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    json::parse_object(text)?.optional_string("agent_id")
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatReply {
    pub agent_id: String,
    pub status: PresenceStatus,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}
