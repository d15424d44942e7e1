//! Operations: health, readiness, activity, maintenance and backup.

pub(crate) mod maintenance;

use crate::context::HubContext;
use crate::delivery::{StreamFeed, open_activity_feed, render};
use crate::identity::invites;
use crate::seal;
use crate::start_error::StartError;
use crate::store::{self, counters, log};
use crate::{Principal, Result};
use chorus_wire::reply::{ActivityRow, HealthReport};
use chorus_wire::secret::Secret;
use chorus_wire::{Error, limits};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a successful write answers `/ready`.
const READY_CACHE_TTL: Duration = Duration::from_secs(1);

/// `GET /health`
pub async fn read_health(hub: &HubContext) -> Result<HealthReport> {
    let counters = hub
        .store()
        .read(async |tx| Ok(counters::read_counters(tx).await?))
        .await?;
    let count = |n: i64| n.max(0) as u64;
    Ok(HealthReport {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_seconds: hub.uptime().as_secs(),
        invite_gating: invites::is_invite_gated(hub.identity()).await?,
        agents_registered: count(counters.agents),
        messages_delivered: count(counters.delivered),
        messages_queued: count(counters.queued),
        messages_failed: count(counters.failed),
        inbox_connections: hub.live_streams().stream_count() as u64,
        messages_stored: count(counters.stored),
    })
}

/// What a ready hub depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyMode {
    /// It has no peers: only the store.
    Standalone,
    /// The store and NATS.
    Clustered,
}

/// `GET /ready`: the store takes writes, NATS is connected, and the hub is not stopping.
pub async fn check_ready(hub: &HubContext) -> Result<ReadyMode> {
    if hub.live_streams().is_draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    // The route is public: one write per second answers all requests.
    let now = hub.clock().monotonic_now();
    if hub
        .last_ready_at()
        .is_none_or(|at| now >= at + READY_CACHE_TTL)
    {
        hub.store()
            .write(async |txn| Ok(counters::read_counters(&txn.tx).await.map(drop)?))
            .await?;
        hub.set_ready_at(now);
    }
    match hub.cluster() {
        None => Ok(ReadyMode::Standalone),
        Some(cluster) if cluster.is_connected() => Ok(ReadyMode::Clustered),
        Some(_) => Err(Error {
            message: "the bus is away".into(),
            ..Error::unavailable("the bus is away")
        }),
    }
}

/// `GET /activity?since=`
pub async fn list_activity(
    principal: &Principal,
    hub: &HubContext,
    since: u64,
    limit: usize,
) -> Result<Vec<ActivityRow>> {
    principal.require_operator()?;
    let limit = limit.clamp(1, limits::ACTIVITY_PAGE);
    // The entry of `since` may have a second row after it.
    let after = render::seq_of_activity(since) - 1;
    let page = hub
        .store()
        .read(async move |tx| Ok(log::list_operator_entries(tx, after, limit).await?))
        .await?;
    let salt = hub.store().trace_salt;
    let rows = page
        .entries
        .iter()
        .flat_map(|entry| render::activity_rows(entry, salt));
    Ok(rows.filter(|row| row.id > since).take(limit).collect())
}

/// `GET /events`: the same rows, live.
pub async fn open_activity_stream(
    principal: &Principal,
    hub: &HubContext,
    since: Option<u64>,
) -> Result<StreamFeed> {
    principal.require_operator()?;
    let connected = json!({"timestamp": hub.clock().now()}).to_string();
    open_activity_feed(hub.delivery(), since, &connected).await
}

/// Copies the database of the hub in `data_dir`, which may be running, into the new directory `to`.
pub fn backup_data_dir(data_dir: &Path, to: &Path) -> Result<PathBuf> {
    let copy = store::backup_database(data_dir, to).map_err(Error::unavailable)?;
    // Without the key a restored hub could not unseal any connection string.
    let key = data_dir.join(seal::SEAL_KEY_FILE);
    if key.exists() {
        std::fs::copy(&key, to.join(seal::SEAL_KEY_FILE)).map_err(Error::unavailable)?;
    }
    Ok(copy)
}

/// Copies the database of the stopped hub in `data_dir` into an empty PostgreSQL database. Returns the rows of each table.
pub async fn copy_to_postgres(
    data_dir: &Path,
    to: &Secret,
) -> std::result::Result<Vec<(String, u64)>, StartError> {
    store::copy_to_postgres(data_dir, to).await
}

/// Advances the log of a restored copy past every cursor that clients have, before a hub is started on it.
pub async fn mark_restored(
    data_dir: &Path,
    database: Option<&Secret>,
) -> std::result::Result<(), StartError> {
    store::advance_after_restore(data_dir, database).await
}
