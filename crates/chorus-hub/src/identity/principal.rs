//! The party on whose behalf a request acts.

use super::AgentCaller;
use crate::Result;
use crate::store::Agent;
use chorus_wire::{Error, ErrorCode};
use std::sync::Arc;

/// The party on whose behalf a request acts. Only [`super::authenticate`] and [`super::authenticate_session`] make one (invariant 3).
#[derive(Clone, Debug)]
pub enum Principal {
    /// A client without a credential.
    Anonymous,
    Agent(AgentCaller),
    /// The holder of an operator key; the fingerprint tells one key from another.
    Operator(u64),
}

impl Principal {
    /// The agent that makes the request; every other principal is told to use an agent's key.
    pub fn require_agent(&self) -> Result<&Arc<Agent>> {
        self.require_caller().map(|caller| &caller.agent)
    }

    /// The same with the key that it came with.
    pub fn require_caller(&self) -> Result<&AgentCaller> {
        match self {
            Principal::Agent(caller) => Ok(caller),
            Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
            Principal::Operator(_) => Err(Error::new(
                ErrorCode::Forbidden,
                "this needs an agent's key, not an operator's",
            )),
        }
    }

    /// Whether it is an operator; an agent's key is never one (R-06, failure 1).
    pub fn require_operator(&self) -> Result<()> {
        match self {
            Principal::Operator(_) => Ok(()),
            Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
            Principal::Agent(_) => Err(Error::new(
                ErrorCode::Forbidden,
                "this needs an operator's key",
            )),
        }
    }

    /// The caller under which its idempotency keys are stored.
    pub(crate) fn idempotency_caller(&self) -> Result<String> {
        match self {
            Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
            Principal::Agent(agent) => Ok(format!("agent {}", agent.id)),
            Principal::Operator(fingerprint) => Ok(format!("operator {fingerprint:016x}")),
        }
    }
}
