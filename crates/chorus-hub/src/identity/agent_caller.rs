//! An agent as the caller of a request: the agent, and the key that it came with.

use crate::store::{Agent, AgentKeyRow, WriteTxn, agent_keys, principals, session_tokens};
use chorus_wire::agent_key::{KeyScope, KeyScopes};
use chorus_wire::time::UnixMicros;
use chorus_wire::{Error, ErrorCode, Result};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A day in microseconds: the last use of a key is recorded by day.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// The agent that a request acts for. It reads like the agent itself.
#[derive(Clone, Debug)]
pub struct AgentCaller {
    pub(crate) agent: Arc<Agent>,
    pub(crate) key: CallerKey,
}

impl Deref for AgentCaller {
    type Target = Agent;

    fn deref(&self) -> &Agent {
        &self.agent
    }
}

/// A key that authenticated.
#[derive(Clone, Debug)]
pub(crate) struct CallerKey {
    pub hash: [u8; 32],
    /// `None` for the key of the registration.
    pub id: Option<Arc<str>>,
    pub scopes: KeyScopes,
    pub expires_at: Option<UnixMicros>,
    /// The hash of the console session that stands for the key.
    pub console_session: Option<[u8; 32]>,
    /// The day of its last use, in days since 1970; shared by the clones in the cache.
    used_on: Arc<AtomicI64>,
}

impl CallerKey {
    /// The key of a registration: it has every scope and no end.
    pub fn of_registration(hash: [u8; 32]) -> Self {
        Self {
            hash,
            id: None,
            scopes: KeyScopes::ALL,
            expires_at: None,
            console_session: None,
            used_on: Arc::default(),
        }
    }

    pub fn is_expired(&self, now: UnixMicros) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// The id to record a use of this key for, at its first use on a day.
    pub fn note_use(&self, day: i64) -> Option<Arc<str>> {
        let id = self.id.clone()?;
        (self.used_on.swap(day, Ordering::Relaxed) != day).then_some(id)
    }
}

impl From<&AgentKeyRow> for CallerKey {
    fn from(row: &AgentKeyRow) -> Self {
        Self {
            hash: row.hash,
            id: Some(row.id.as_str().into()),
            scopes: row.scopes,
            expires_at: row.expires_at,
            console_session: None,
            used_on: Arc::new(AtomicI64::new(row.used_on.unwrap_or_default())),
        }
    }
}

impl AgentCaller {
    /// Fails with the name of the scope that the key lacks.
    pub fn require_scope(&self, scope: KeyScope) -> Result<()> {
        if self.key.scopes.contains(scope) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Scope,
            format!("this needs a key with the scope {scope}"),
        ))
    }
}

/// The credentials that a stream was opened with: it ends with each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CredentialHashes {
    /// `None` for an operator, whose key ends with the configuration.
    pub key: Option<[u8; 32]>,
    pub console_session: Option<[u8; 32]>,
}

impl CredentialHashes {
    pub fn contains(&self, hash: &[u8; 32]) -> bool {
        self.key.as_ref() == Some(hash) || self.console_session.as_ref() == Some(hash)
    }
}

impl From<&CallerKey> for CredentialHashes {
    fn from(key: &CallerKey) -> Self {
        Self {
            key: Some(key.hash),
            console_session: key.console_session,
        }
    }
}

/// Checks inside a transaction that the caller's key has not ended since the request authenticated, and that its
/// console session has not.
pub(crate) async fn require_live_key(txn: &WriteTxn<'_>, caller: &AgentCaller) -> Result<()> {
    let is_live = match &caller.key.id {
        None => principals::find_agent(&txn.tx, caller.id)
            .await?
            .is_some_and(|agent| agent.key_hash == Some(caller.key.hash)),
        Some(id) => agent_keys::find_key(&txn.tx, id)
            .await?
            .is_some_and(|row| !CallerKey::from(&row).is_expired(txn.now())),
    };
    let has_session = match &caller.key.console_session {
        Some(hash) => session_tokens::find_session_token(&txn.tx, hash, txn.now())
            .await?
            .is_some(),
        None => true,
    };
    match is_live && has_session {
        true => Ok(()),
        false => Err(ErrorCode::Unauthorized.into()),
    }
}
