//! The outbox at work: a bounded number of attempts at once, each lane by itself, so that a slow receiver delays nobody.

use super::outbox;
use crate::store::outbox::{self as rows, Sort, Taken};
use crate::{Hub, Result};
use chorus_wire::limits;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What this hub is posting now. Full: the rest waits in the table, and is looked for whenever an attempt ends.
#[derive(Default)]
pub(crate) struct Pool {
    /// By row; true for one that has failed before.
    under_way: Mutex<HashMap<i64, bool>>,
    /// One at a time looks for more, so that two do not count the same free places.
    filling: tokio::sync::Mutex<()>,
    ended: watch::Sender<u64>,
}

impl Pool {
    fn under_way(&self) -> MutexGuard<'_, HashMap<i64, bool>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Free places of a sort. Those that failed get half of them: were there ever so many that hang, the others go on.
    fn free(&self, sort: Sort) -> usize {
        let under_way = self.under_way();
        let failed = under_way.values().filter(|failed| **failed).count();
        let all = limits::OUTBOX_AT_ONCE.saturating_sub(under_way.len());
        match sort {
            Sort::New => all,
            Sort::Failed => all.min((limits::OUTBOX_AT_ONCE / 2).saturating_sub(failed)),
        }
    }
}

/// One attempt under way; however it ends, its place is free afterwards and somebody looks for the next.
struct Place {
    hub: Hub,
    id: i64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.pool().under_way().remove(&self.id);
        self.hub.pool().ended.send_modify(|count| *count += 1);
        self.hub.owes();
    }
}

/// Starts what is due and has a place. How many it started.
pub(crate) async fn fill(hub: &Hub) -> Result<usize> {
    let _one_at_a_time = hub.pool().filling.lock().await;
    if hub.bus().draining() {
        return Ok(0);
    }
    // The new ones first: they have the better chance.
    Ok(start(hub, Sort::New).await? + start(hub, Sort::Failed).await?)
}

async fn start(hub: &Hub, sort: Sort) -> Result<usize> {
    let (free, now) = (hub.pool().free(sort), hub.clock().now());
    let busy: HashSet<i64> = hub.pool().under_way().keys().copied().collect();
    if free == 0 {
        return Ok(0);
    }
    let looked = busy.len() + 1;
    let due = hub
        .store()
        .read(async move |tx| Ok(rows::due(tx, now, sort, looked).await?))
        .await?;
    if due.iter().all(|id| busy.contains(id)) {
        return Ok(0);
    }
    // Well past the deadline of one request.
    let lease = limits::OUTBOX_LEASE.max(hub.options().webhook_timeout.saturating_mul(2));
    let taken = hub
        .store()
        .write(async move |txn| Ok(rows::take(&txn.tx, txn.now(), lease, sort, free, &busy).await?))
        .await?;
    let count = taken.len();
    for one in taken {
        begin(hub, one);
    }
    Ok(count)
}

fn begin(hub: &Hub, one: Taken) {
    hub.pool().under_way().insert(one.id, one.tries > 0);
    let place = Place {
        hub: hub.clone(),
        id: one.id,
    };
    tokio::spawn(async move {
        if let Err(error) = outbox::attempt(&place.hub, one).await {
            tracing::warn!(%error, cause = error.cause, "a post from the outbox will be tried again");
        }
    });
}

/// Posts everything that is due and waits until nothing is, and nothing is under way.
pub(crate) async fn run_dry(hub: &Hub) -> Result<()> {
    let mut ended = hub.pool().ended.subscribe();
    loop {
        ended.borrow_and_update();
        let started = fill(hub).await?;
        let idle = hub.pool().under_way().is_empty();
        // One that ended meanwhile may have left its lane to the next. The sender lives as long as the hub.
        if started == 0 && idle && !ended.has_changed().unwrap_or(false) {
            return Ok(());
        }
        if !idle {
            let _ = ended.changed().await;
        }
    }
}
