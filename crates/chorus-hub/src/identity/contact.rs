//! Contact: whether a receiver lets a sender contact it.

use super::Identity;
use crate::Result;
use crate::store::{Agent, AgentId, ContactLimits, DbConnection, contacts};
use chorus_wire::ErrorCode;
use chorus_wire::identity::AgentName;
use quick_cache::sync::Cache;

/// Max cached decisions about pairs of agents: a few words each.
const MAX_CACHED_DECISIONS: usize = 100_000;

/// Whether a receiver has blocked a sender, by the version of the receiver's limits. A change gives them another version, and
/// the receiver's record is invalidated at every hub, so no decision needs to be removed.
pub(crate) struct ContactCache {
    blocks: Cache<(AgentId, i64, AgentId), bool>,
}

impl Default for ContactCache {
    fn default() -> Self {
        Self {
            blocks: Cache::new(MAX_CACHED_DECISIONS),
        }
    }
}

/// The names under which a sender can be blocked: its own, and `@` and its host.
fn blockable_names(sender: &Agent, own_host: &str) -> (String, String) {
    let name = match AgentName::parse("agent_id", &sender.agent_id) {
        Ok(name) => name.canonical_text(own_host),
        Err(_) => sender.agent_id.to_string(),
    };
    let host = match name.split_once('@') {
        Some((_, host)) => format!("@{}", host.to_ascii_lowercase()),
        None => name.clone(),
    };
    (name, host)
}

impl Identity {
    /// The receiver's limits let the sender contact it. Without limits this costs one comparison.
    pub(crate) async fn check_contact(
        &self,
        receiver: AgentId,
        limits: ContactLimits,
        sender: &Agent,
    ) -> Result<()> {
        if limits.is_open() || receiver == sender.id {
            return Ok(());
        }
        if self.has_blocked(receiver, limits, sender).await? {
            return Err(ErrorCode::Blocked.into());
        }
        let sender_id = sender.id;
        // Contacts follow from messages, organisations and channels too, so they are not cached.
        let is_refused = limits.contacts_only
            && !self
                .store
                .read(async move |tx| Ok(contacts::is_contact(tx, receiver, sender_id).await?))
                .await?;
        if is_refused {
            return Err(ErrorCode::NotAContact.into());
        }
        Ok(())
    }

    async fn has_blocked(
        &self,
        receiver: AgentId,
        limits: ContactLimits,
        sender: &Agent,
    ) -> Result<bool> {
        let key = (receiver, limits.version, sender.id);
        let cache = &self.state.contact_cache.blocks;
        let guard = match cache.get_value_or_guard_async(&key).await {
            Ok(blocked) => return Ok(blocked),
            Err(guard) => guard,
        };
        let (name, host) = blockable_names(sender, &self.host_name);
        let blocked = self
            .store
            .read(async move |tx| Ok(contacts::has_block(tx, receiver, &name, &host).await?))
            .await?;
        let _ = guard.insert(blocked);
        Ok(blocked)
    }

    /// The same inside a transaction.
    pub(crate) async fn check_contact_in(
        &self,
        tx: &DbConnection<'_>,
        receiver: &Agent,
        sender: &Agent,
    ) -> Result<()> {
        if receiver.contact_limits.is_open() || receiver.id == sender.id {
            return Ok(());
        }
        let (name, host) = blockable_names(sender, &self.host_name);
        if contacts::has_block(tx, receiver.id, &name, &host).await? {
            return Err(ErrorCode::Blocked.into());
        }
        if receiver.contact_limits.contacts_only
            && !contacts::is_contact(tx, receiver.id, sender.id).await?
        {
            return Err(ErrorCode::NotAContact.into());
        }
        Ok(())
    }
}
