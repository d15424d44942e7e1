//! What an operator asks: is it well, what happened, what is happening.

pub(crate) mod maintenance;

use crate::channel::seal;
use crate::delivery::{Feed, open_activity, render};
use crate::hub::StartError;
use crate::identity::invites;
use crate::store::{self, Kind, NewEntry, Txn, counters, log};
use crate::{Hub, Principal, Result};
use chorus_wire::reply::{Activity, Health};
use chorus_wire::secret::Secret;
use chorus_wire::{Error, limits};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a good answer to `/ready` stands.
const READY_FOR: Duration = Duration::from_secs(1);

/// `GET /health`
pub async fn health(hub: &Hub) -> Result<Health> {
    let sums = hub
        .store()
        .read(async |tx| Ok(counters::read(tx).await?))
        .await?;
    let count = |n: i64| n.max(0) as u64;
    Ok(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        uptime_seconds: hub.uptime().as_secs(),
        invite_gating: invites::gated(hub).await?,
        agents_registered: count(sums.agents),
        messages_delivered: count(sums.delivered),
        messages_queued: count(sums.queued),
        messages_failed: count(sums.failed),
        inbox_connections: hub.bus().streams() as u64,
        messages_stored: count(sums.stored),
    })
}

/// What a hub that is ready stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is alone, and needs nobody.
    Alone,
    /// It reaches the bus that it shares with others.
    Shared,
}

/// `GET /ready`: the store takes writes, the bus answers, and the hub is not stopping.
pub async fn ready(hub: &Hub) -> Result<Reach> {
    if hub.bus().draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    // Anybody asks as often as they like: one write a second answers them all.
    let now = hub.clock().steady();
    if hub.was_ready_at().is_none_or(|at| now >= at + READY_FOR) {
        hub.store()
            .write(async |txn| Ok(counters::read(&txn.tx).await.map(drop)?))
            .await?;
        hub.is_ready_at(now);
    }
    match hub.mesh() {
        None => Ok(Reach::Alone),
        Some(mesh) if mesh.is_up() => Ok(Reach::Shared),
        Some(_) => Err(Error {
            message: "the bus is away".into(),
            ..Error::unavailable("the bus is away")
        }),
    }
}

/// `GET /activity?since=`
pub async fn activity(
    who: &Principal,
    hub: &Hub,
    since: u64,
    limit: usize,
) -> Result<Vec<Activity>> {
    who.operator()?;
    let limit = limit.clamp(1, limits::ACTIVITY_PAGE);
    // The entry that `since` is part of may have another part after it.
    let after = render::place_of(since) - 1;
    let page = hub
        .store()
        .read(async move |tx| Ok(log::everything(tx, after, limit).await?))
        .await?;
    let salt = hub.store().salt;
    let rows = page
        .entries
        .iter()
        .flat_map(|entry| render::activity(entry, salt));
    Ok(rows.filter(|row| row.id > since).take(limit).collect())
}

/// `GET /events`: the same, live.
pub async fn events(who: &Principal, hub: &Hub, since: Option<u64>) -> Result<Feed> {
    who.operator()?;
    let connected = json!({"timestamp": hub.clock().now()}).to_string();
    open_activity(hub, since, &connected).await
}

/// Writes down that something happened on the hub, in the transaction in which it does.
pub(crate) fn happened(txn: &mut Txn<'_>, kind: &str, data: &Value) {
    txn.append(NewEntry {
        subject: log::HUB,
        subject_name: "".into(),
        kind: Kind::Activity,
        actor: log::HUB,
        actor_name: "".into(),
        body: json!({"type": kind, "data": data}).to_string().into(),
        otherwise: None,
    });
}

/// Copies the database of the hub in `data_dir`, which may be running, into the new directory `to`.
pub fn backup(data_dir: &Path, to: &Path) -> Result<PathBuf> {
    let copy = store::backup(data_dir, to).map_err(Error::unavailable)?;
    // Without the key nobody could be reached from the copy.
    let key = data_dir.join(seal::FILE);
    if key.exists() {
        std::fs::copy(&key, to.join(seal::FILE)).map_err(Error::unavailable)?;
    }
    Ok(copy)
}

/// Copies everything of the stopped hub in `data_dir` into an empty PostgreSQL database: how many rows of which table.
pub async fn copy(
    data_dir: &Path,
    to: &Secret,
) -> std::result::Result<Vec<(String, u64)>, StartError> {
    store::copy(data_dir, to).await
}

/// Before a hub is started on a copy that is older than what its clients have seen.
pub async fn restored(
    data_dir: &Path,
    database: Option<&Secret>,
) -> std::result::Result<(), StartError> {
    store::restored(data_dir, database).await
}
