//! Quotas of owners: what an owner may store, and what it uses (R-95, D-107).

use super::{Identity, Principal};
use crate::Result;
use crate::clock::Clock;
use crate::limits;
use crate::store::{OwnerId, Store, owner_usage};
use chorus_wire::limits::STORED_ENTRY_BYTES;
use chorus_wire::usage::{QuotaBounds, QuotaName, QuotaUse, UsageReport};
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The octets that each active owner stores, as last read from the database, and what was accepted here since. Every write asks,
/// so the answer is in memory.
pub(crate) struct StoredBytes {
    bounds: QuotaBounds,
    clock: Clock,
    owners: Cache<OwnerId, Arc<CachedUse>>,
}

struct CachedUse {
    octets: AtomicU64,
    read_at: Duration,
}

impl StoredBytes {
    pub fn new(bounds: QuotaBounds, clock: Clock) -> Self {
        Self {
            bounds,
            clock,
            owners: Cache::new(limits::OWNERS_CACHED),
        }
    }

    /// Counts a write of this many octets, or refuses it.
    async fn charge(&self, store: &Store, owner: OwnerId, octets: u64) -> Result<()> {
        let now = self.clock.monotonic_now();
        let is_younger = |used: &CachedUse, age| now.saturating_sub(used.read_at) < age;
        if let Some(used) = self.owners.get(&owner)
            && is_younger(&used, limits::STORED_BYTES_REREAD)
        {
            let wanted = used.octets.load(Ordering::Relaxed).saturating_add(octets);
            let verdict = self.bounds.check(QuotaName::StoredBytes, wanted);
            // Before a refusal the use is read again: retention or a deletion may have made room.
            if verdict.is_ok() || is_younger(&used, limits::STORED_BYTES_REFUSAL_REREAD) {
                used.octets
                    .fetch_add(if verdict.is_ok() { octets } else { 0 }, Ordering::Relaxed);
                return verdict;
            }
        }
        let stored = store
            .read(async move |tx| Ok(owner_usage::sum_stored_bytes(tx, owner).await?))
            .await?;
        let wanted = stored.saturating_add(octets);
        let verdict = self.bounds.check(QuotaName::StoredBytes, wanted);
        let counted = if verdict.is_ok() { wanted } else { stored };
        let used = CachedUse {
            octets: counted.into(),
            read_at: now,
        };
        self.owners.insert(owner, Arc::new(used));
        verdict
    }
}

impl Identity {
    /// Counts a write of this many octets for the owner, or refuses it with `ERR_QUOTA`. It is called before the write.
    pub(crate) async fn charge_stored_bytes(&self, owner: OwnerId, octets: usize) -> Result<()> {
        let octets = octets as u64 + STORED_ENTRY_BYTES;
        self.state
            .stored_bytes
            .charge(&self.store, owner, octets)
            .await
    }
}

/// `GET /agent/usage`: what the owner of the agent uses of its quotas.
pub async fn get_usage(principal: &Principal, identity: &Identity) -> Result<UsageReport> {
    let agent = principal.require_agent()?.clone();
    let bounds = identity.state.stored_bytes.bounds;
    let owner = agent.owner;
    let owner_id = agent.owner_name.clone();
    identity
        .store
        .read(async move |tx| {
            let quota_use = |name, used| QuotaUse {
                used,
                bound: bounds.get(name),
            };
            Ok(UsageReport {
                owner_id: owner_id.clone(),
                stored_bytes: quota_use(
                    QuotaName::StoredBytes,
                    owner_usage::sum_stored_bytes(tx, owner).await?,
                ),
                channels: quota_use(
                    QuotaName::Channels,
                    owner_usage::count_owner_channels(tx, owner).await?,
                ),
                members: quota_use(
                    QuotaName::Members,
                    owner_usage::count_owner_members(tx, owner).await?,
                ),
                artifacts: quota_use(
                    QuotaName::Artifacts,
                    owner_usage::count_owner_artifacts(tx, owner).await?,
                ),
                open_jobs: quota_use(
                    QuotaName::OpenJobs,
                    owner_usage::count_open_jobs(tx, owner).await?,
                ),
            })
        })
        .await
}
