//! Health and readiness of the hub.

use crate::Result;
use crate::context::HubContext;
use crate::identity::invites;
use crate::store::{counters, outbox};
use chorus_wire::Error;
use chorus_wire::reply::HealthReport;
use std::time::Duration;

/// An outbox with more than these is in trouble, whatever the exact number.
const MAX_COUNTED_POSTS: i64 = 100_000;
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

/// The posts of the outbox that wait or are in flight, for `/metrics`.
pub async fn count_pending_posts(hub: &HubContext) -> Result<u64> {
    let count = hub
        .store()
        .read(async |tx| Ok(outbox::count_pending(tx, MAX_COUNTED_POSTS).await?))
        .await?;
    Ok(count.unsigned_abs())
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
    hub.store().check_data_dir().map_err(Error::unavailable)?;
    // The route is public: one write per second answers all requests.
    let now = hub.clock().monotonic_now();
    if hub
        .last_ready_at()
        .is_none_or(|at| now >= at + READY_CACHE_TTL)
    {
        // A row that changes: a transaction without one commits on a full or read-only disk.
        hub.store()
            .write(async |txn| {
                let now = txn.now().0;
                Ok(counters::write_setting(&txn.tx, counters::READY_AT, now).await?)
            })
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
