//! The party on whose behalf a request acts.

use super::{AgentCaller, CredentialHashes, OperatorCaller};
use crate::Result;
use crate::store::{Agent, WriteTxn};
use chorus_wire::{Error, ErrorCode};
use std::sync::Arc;

/// The party on whose behalf a request acts. Only [`super::authenticate`] and [`super::open_session`] make one (invariant 3).
#[derive(Clone, Debug)]
pub enum Principal {
    /// A client without a credential.
    Anonymous,
    Agent(AgentCaller),
    /// The holder of an operator key.
    Operator(OperatorCaller),
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
    pub fn require_operator(&self) -> Result<&OperatorCaller> {
        match self {
            Principal::Operator(operator) => Ok(operator),
            Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
            Principal::Agent(_) => Err(Error::new(
                ErrorCode::Forbidden,
                "this needs an operator's key",
            )),
        }
    }

    /// What a stream of this principal ends with.
    pub(crate) fn credential_hashes(&self) -> CredentialHashes {
        match self {
            Principal::Anonymous => CredentialHashes::default(),
            Principal::Agent(caller) => CredentialHashes::from(&caller.key),
            Principal::Operator(operator) => CredentialHashes {
                key: None,
                console_session: operator.console_session,
            },
        }
    }

    /// Records an act of an operator in the transaction of the act; other principals leave other traces.
    pub(crate) fn record_operator_act(&self, txn: &mut WriteTxn<'_>, act: &str, target: &str) {
        match self {
            Principal::Operator(operator) => operator.record_act(txn, act, target),
            Principal::Agent(_) | Principal::Anonymous => {}
        }
    }

    /// The caller under which its idempotency keys are stored.
    pub(crate) fn idempotency_caller(&self) -> Result<String> {
        match self {
            Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
            Principal::Agent(agent) => Ok(format!("agent {}", agent.id)),
            Principal::Operator(operator) => Ok(format!("operator {:016x}", operator.fingerprint)),
        }
    }
}
