//! Identity: principals, their keys and names, sessions, invites, rate budgets, quotas and presence.

mod agent_caller;
mod console_sign_in;
mod contact;
pub mod invites;
mod key_cache;
mod name_rules;
mod operator_caller;
mod presence;
mod principal;
mod quotas;
pub mod rate_limit;
mod session_token;

pub use agent_caller::AgentCaller;
pub(crate) use agent_caller::{CallerKey, CredentialHashes, DAY_MICROS, require_live_key};
pub use console_sign_in::{create_console_link, create_operator_link, is_sign_in_credential};
pub(crate) use console_sign_in::{end_sessions, sign_in_to_console, sign_out_of_console};
pub(crate) use contact::ContactCache;
pub(crate) use key_cache::{KeyCache, hash_secret};
pub use key_cache::{authenticate, authenticate_replaced_key, needs_lookup};
pub(crate) use name_rules::{is_reserved_name, name_skeleton};
pub use operator_caller::OperatorCaller;
pub(crate) use operator_caller::OperatorKey;
pub(crate) use presence::{AgentPresence, PresenceAnnouncer};
pub use principal::Principal;
pub(crate) use quotas::StoredBytes;
pub use quotas::get_usage;
pub use session_token::{create_session_token, open_session};

pub use crate::store::{Agent, IdempotencyKey};

use crate::Result;
use crate::clock::Clock;
use crate::settings::HubOptions;
use crate::start_error::StartError;
use crate::store::Store;
use crate::store::session_tokens::find_session_token;
use chorus_wire::identity::AgentName;
use rate_limit::{BudgetAuthority, RateBudgets};
use std::sync::Arc;

/// What the hub knows of its callers, and the store that it looks them up in.
pub struct Identity {
    store: Arc<Store>,
    clock: Clock,
    host_name: String,
    state: IdentityState,
    /// `None` for a hub without peers.
    peers: Option<IdentityPeers>,
}

/// The part of identity that is in memory. It exists before the store is open, because the log entries of peers change it.
#[derive(Clone)]
pub(crate) struct IdentityState {
    pub key_cache: Arc<KeyCache>,
    pub rate_budgets: Arc<RateBudgets>,
    pub presence: Arc<AgentPresence>,
    pub contact_cache: Arc<ContactCache>,
    pub stored_bytes: Arc<StoredBytes>,
}

impl IdentityState {
    pub fn new(options: &HubOptions) -> std::result::Result<Self, StartError> {
        let operator_keys = OperatorKey::parse_all(&options.operator_keys)?;
        Ok(Self {
            key_cache: Arc::new(KeyCache::new(operator_keys)),
            rate_budgets: Arc::new(RateBudgets::new(options.clock.clone())),
            presence: Arc::default(),
            contact_cache: Arc::default(),
            stored_bytes: Arc::new(StoredBytes::new(options.quotas, options.clock.clone())),
        })
    }
}

/// What identity asks of the other hubs of a cluster.
pub(crate) struct IdentityPeers {
    pub presence: Arc<dyn PresenceAnnouncer>,
    pub budgets: Arc<dyn BudgetAuthority>,
}

impl Identity {
    pub(crate) fn new(
        options: &HubOptions,
        store: Arc<Store>,
        state: IdentityState,
        peers: Option<IdentityPeers>,
    ) -> Self {
        Self {
            store,
            clock: options.clock.clone(),
            host_name: options.host_name.clone(),
            state,
            peers,
        }
    }

    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.state.key_cache
    }

    pub(crate) fn rate_budgets(&self) -> &RateBudgets {
        &self.state.rate_budgets
    }

    /// Whether the key and the console session with which this agent authenticated are still valid.
    pub(crate) async fn is_current_key(&self, caller: &AgentCaller) -> Result<bool> {
        if !self.is_open_session(caller.key.console_session).await? {
            return Ok(false);
        }
        let found = self
            .key_cache()
            .find_by_key(&self.store, caller.key.hash, self.clock.now())
            .await?;
        Ok(found.is_some_and(|known| known.id == caller.id))
    }

    /// Whether this console session, if there is one, has not ended.
    pub(crate) async fn is_open_session(&self, console_session: Option<[u8; 32]>) -> Result<bool> {
        let Some(hash) = console_session else {
            return Ok(true);
        };
        let now = self.clock.now();
        self.store
            .read(async move |tx| Ok(find_session_token(tx, &hash, now).await?.is_some()))
            .await
    }
}

/// The registered agent of a name in any of its spellings.
pub(crate) async fn find_agent(
    identity: &Identity,
    name: &AgentName,
) -> Result<Option<Arc<Agent>>> {
    identity
        .key_cache()
        .find_by_name(&identity.store, name.canonical_text(&identity.host_name))
        .await
}
