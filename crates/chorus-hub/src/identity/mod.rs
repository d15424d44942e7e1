//! Who is asking: principals, their names, their keys, and how they come and go.

mod directory;
pub mod invites;
mod key_cache;
pub mod rate_limit;
mod register;
mod session_token;

pub use directory::{
    DirectoryPage, get_agent_record, get_invite_card, list_agent_records, list_directory,
};
pub(crate) use key_cache::{KeyCache, hash_secret};
pub use key_cache::{authenticate, authenticate_session, needs_lookup};
pub use register::{register_agent, register_on_behalf, unregister_agent};
pub use session_token::create_session_token;

pub use crate::store::{Agent, IdempotencyKey};

use crate::{Hub, Result};
use chorus_wire::{Code, Error, identity::AgentName};
use std::sync::Arc;

/// Who is asking. Made by [`authenticate`] and [`authenticate_session`] and nothing else (law 3).
#[derive(Clone, Debug)]
pub enum Principal {
    /// Nobody in particular.
    Anonymous,
    Agent(Arc<Agent>),
    /// Whoever has this operator key, told apart from the others by its fingerprint.
    Operator(u64),
}

impl Principal {
    /// The agent that is asking; anybody else is told to bring an agent's key.
    pub fn require_agent(&self) -> Result<&Arc<Agent>> {
        match self {
            Principal::Agent(agent) => Ok(agent),
            Principal::Anonymous => Err(Code::Unauthorized.into()),
            Principal::Operator(_) => Err(Error::new(
                Code::Forbidden,
                "this needs an agent's key, not an operator's",
            )),
        }
    }

    /// Whether it is an operator; an agent's key is never one (R-06, failure 1).
    pub fn require_operator(&self) -> Result<()> {
        match self {
            Principal::Operator(_) => Ok(()),
            Principal::Anonymous => Err(Code::Unauthorized.into()),
            Principal::Agent(_) => Err(Error::new(Code::Forbidden, "this needs an operator's key")),
        }
    }

    /// Under which name its idempotency keys are kept.
    pub(crate) fn idempotency_caller(&self) -> Result<String> {
        match self {
            Principal::Anonymous => Err(Code::Unauthorized.into()),
            Principal::Agent(agent) => Ok(format!("agent {}", agent.id)),
            Principal::Operator(fingerprint) => Ok(format!("operator {fingerprint:016x}")),
        }
    }
}

/// The living agent of a name in any of its spellings; `None` when nobody has it.
pub(crate) async fn find_agent(hub: &Hub, name: &AgentName) -> Result<Option<Arc<Agent>>> {
    hub.key_cache()
        .find_by_name(hub, name.canonical_text(&hub.options().host_name))
        .await
}
