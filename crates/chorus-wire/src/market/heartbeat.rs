//! `POST /heartbeat`: I am still here.

use crate::market::discover::PresenceStatus;
use crate::{Result, json, time::UnixMicros};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The agent that says so, when it says which. Clients put more into a heartbeat than anybody reads; it is left alone.
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
