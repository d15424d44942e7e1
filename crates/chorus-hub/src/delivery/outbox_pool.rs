//! The outbox at work: a bounded number of attempts at once, each lane by itself, so that a slow receiver delays nobody.

use super::outbox;
use crate::store::outbox::{self as rows, OutboxRow, RetryClass};
use crate::{Hub, Result};
use chorus_wire::limits;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What this hub is posting now. Full: the rest waits in the table, and is looked for whenever an attempt ends.
#[derive(Default)]
pub(crate) struct OutboxPool {
    /// By row; true for one that has failed before.
    in_flight: Mutex<HashMap<i64, bool>>,
    /// One at a time looks for more, so that two do not count the same free places.
    fill_lock: tokio::sync::Mutex<()>,
    ended_count: watch::Sender<u64>,
}

impl OutboxPool {
    fn in_flight(&self) -> MutexGuard<'_, HashMap<i64, bool>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Free places of a sort. Those that failed get half of them: were there ever so many that hang, the others go on.
    fn free_slots(&self, sort: RetryClass) -> usize {
        let in_flight = self.in_flight();
        let failed = in_flight.values().filter(|failed| **failed).count();
        let all_free = limits::OUTBOX_IN_FLIGHT.saturating_sub(in_flight.len());
        match sort {
            RetryClass::New => all_free,
            RetryClass::Failed => {
                all_free.min((limits::OUTBOX_IN_FLIGHT / 2).saturating_sub(failed))
            }
        }
    }
}

/// One attempt under way; however it ends, its place is free afterwards and somebody looks for the next.
struct OutboxSlot {
    hub: Hub,
    row_id: i64,
}

impl Drop for OutboxSlot {
    fn drop(&mut self) {
        self.hub.outbox_pool().in_flight().remove(&self.row_id);
        self.hub
            .outbox_pool()
            .ended_count
            .send_modify(|count| *count += 1);
        self.hub.wake_outbox();
    }
}

/// Starts what is due and has a place. How many it started.
pub(crate) async fn start_due_posts(hub: &Hub) -> Result<usize> {
    let _one_at_a_time = hub.outbox_pool().fill_lock.lock().await;
    if hub.live_streams().is_draining() {
        return Ok(0);
    }
    // The new ones first: they have the better chance.
    Ok(lease_and_start(hub, RetryClass::New).await?
        + lease_and_start(hub, RetryClass::Failed).await?)
}

async fn lease_and_start(hub: &Hub, sort: RetryClass) -> Result<usize> {
    let (free_slots, now) = (hub.outbox_pool().free_slots(sort), hub.clock().now());
    let in_flight_ids: HashSet<i64> = hub.outbox_pool().in_flight().keys().copied().collect();
    if free_slots == 0 {
        return Ok(0);
    }
    let max_looked = in_flight_ids.len() + 1;
    let due_ids = hub
        .store()
        .read(async move |tx| Ok(rows::list_due_row_ids(tx, now, sort, max_looked).await?))
        .await?;
    if due_ids.iter().all(|id| in_flight_ids.contains(id)) {
        return Ok(0);
    }
    // Well past the deadline of one request.
    let lease = limits::OUTBOX_LEASE.max(hub.options().webhook_timeout.saturating_mul(2));
    let leased_rows = hub
        .store()
        .write(async move |txn| {
            Ok(
                rows::lease_due_rows(&txn.tx, txn.now(), lease, sort, free_slots, &in_flight_ids)
                    .await?,
            )
        })
        .await?;
    let count = leased_rows.len();
    for leased_row in leased_rows {
        spawn_attempt(hub, leased_row);
    }
    Ok(count)
}

fn spawn_attempt(hub: &Hub, leased_row: OutboxRow) {
    hub.outbox_pool()
        .in_flight()
        .insert(leased_row.id, leased_row.attempts > 0);
    let slot = OutboxSlot {
        hub: hub.clone(),
        row_id: leased_row.id,
    };
    tokio::spawn(async move {
        if let Err(error) = outbox::attempt_post(&slot.hub, leased_row).await {
            tracing::warn!(%error, cause = error.cause, "a post from the outbox will be tried again");
        }
    });
}

/// Posts everything that is due and waits until nothing is, and nothing is under way.
pub(crate) async fn run_due_posts(hub: &Hub) -> Result<()> {
    let mut ended_count = hub.outbox_pool().ended_count.subscribe();
    loop {
        ended_count.borrow_and_update();
        let started_count = start_due_posts(hub).await?;
        let is_idle = hub.outbox_pool().in_flight().is_empty();
        // One that ended meanwhile may have left its lane to the next. The sender lives as long as the hub.
        if started_count == 0 && is_idle && !ended_count.has_changed().unwrap_or(false) {
            return Ok(());
        }
        if !is_idle {
            let _ = ended_count.changed().await;
        }
    }
}
