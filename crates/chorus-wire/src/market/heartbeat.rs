//! `POST /heartbeat`: I am still here.

use crate::market::discover::Presence;
use crate::{Result, json, time::Micros};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The agent that says so, when it says which. Clients put more into a heartbeat than anybody reads; it is left alone.
pub fn read(body: &[u8]) -> Result<Option<String>> {
    let text = json::text(body)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    json::object(text)?.optional_string("agent_id")
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Heard {
    pub agent_id: String,
    pub status: Presence,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: Micros,
}
