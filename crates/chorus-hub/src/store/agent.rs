//! The row of a registered agent.

use super::{AgentId, OwnerId};
use chorus_wire::{agent_card::AgentCard, time::UnixMicros};
use std::sync::Arc;

/// A registered agent: one row, up to three names.
#[derive(Clone, Debug)]
pub struct Agent {
    pub id: AgentId,
    /// The name it registered under.
    pub agent_id: Arc<str>,
    pub handle: Option<String>,
    pub owner: OwnerId,
    pub owner_name: String,
    /// The card as JSON: thousands of agents are cached, and few of their cards are read.
    pub card: Option<Box<str>>,
    pub endpoint: Option<String>,
    /// Its market profile, as JSON.
    pub market: Option<String>,
    pub key_hash: Option<[u8; 32]>,
    pub registered_at: UnixMicros,
}

impl Agent {
    pub fn parse_card(&self) -> Option<AgentCard> {
        serde_json::from_str(self.card.as_deref()?).ok()
    }
}
