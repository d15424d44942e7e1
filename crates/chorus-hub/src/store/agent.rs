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
    /// Signs what the hub posts to its endpoints; sealed.
    pub sealed_endpoint_secret: Option<Box<[u8]>>,
    /// Its market profile, as JSON.
    pub market: Option<String>,
    pub key_hash: Option<[u8; 32]>,
    pub registered_at: UnixMicros,
    pub contact_limits: ContactLimits,
}

/// Whether anything limits who may contact an agent. It is part of the agent's record, so that an agent without limits
/// costs a sender no look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContactLimits {
    /// 0 without limits, else another number after every change of them.
    pub version: i64,
    pub contacts_only: bool,
}

impl ContactLimits {
    pub const fn is_open(self) -> bool {
        self.version == 0
    }
}

impl Agent {
    /// Whether its owner has its own name: the `agent_id`, or that with the hub's host where another owner has the short name.
    pub fn owns_itself(&self) -> bool {
        self.owner_name
            .strip_prefix(&*self.agent_id)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    }

    pub fn parse_card(&self) -> Option<AgentCard> {
        serde_json::from_str(self.card.as_deref()?).ok()
    }
}
