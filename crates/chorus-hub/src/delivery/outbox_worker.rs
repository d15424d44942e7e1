//! The outbox worker: leases due rows and runs a bounded number of attempts at once, so that a slow receiver delays no other.

use super::Delivery;
use super::outbox::{self, OutboxHandlers};
use crate::Result;
use crate::limits;
use crate::store::outbox::{self as rows, LeasedRows, OutboxRow, PostsInFlight, RetryClass};
use crate::store::{OutboxRowId, OwnerId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The attempts of this hub that are in flight. When it is full, other due rows wait in the table until an attempt ends.
pub(crate) struct OutboxWorker {
    handlers: OnceLock<OutboxHandlers>,
    /// Notified after a commit that enqueued a post, and when an attempt ends.
    pub(super) wakeup: Arc<Notify>,
    /// How long a lease lasts.
    lease: Duration,
    in_flight: Mutex<HashMap<OutboxRowId, PostInFlight>>,
    /// Held while rows are leased, so that two callers do not count the same free slots.
    fill_lock: tokio::sync::Mutex<()>,
    ended_count: watch::Sender<u64>,
}

/// One attempt in flight.
struct PostInFlight {
    owner: OwnerId,
    has_failed_before: bool,
}

impl OutboxWorker {
    pub fn new(webhook_timeout: Duration) -> Self {
        Self {
            handlers: OnceLock::new(),
            wakeup: Arc::default(),
            // Well past the deadline of one request.
            lease: limits::OUTBOX_LEASE.max(webhook_timeout.saturating_mul(2)),
            in_flight: Mutex::default(),
            fill_lock: tokio::sync::Mutex::default(),
            ended_count: watch::Sender::default(),
        }
    }

    /// Registered once, before the first row is leased.
    pub fn register_handlers(&self, handlers: OutboxHandlers) {
        let _ = self.handlers.set(handlers);
    }

    pub(super) fn handlers(&self) -> Option<&OutboxHandlers> {
        self.handlers.get()
    }

    /// A post was enqueued and committed: it goes out now, not at the next poll.
    pub fn wake(&self) {
        self.wakeup.notify_one();
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<OutboxRowId, PostInFlight>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Free slots for rows of a class. Rows that failed before get at most half of all, so that receivers that hang cannot take
    /// every slot.
    fn free_slots(&self, retry_class: RetryClass) -> usize {
        let in_flight = self.in_flight();
        let failed = in_flight
            .values()
            .filter(|post| post.has_failed_before)
            .count();
        let all_free = limits::OUTBOX_IN_FLIGHT.saturating_sub(in_flight.len());
        match retry_class {
            RetryClass::New => all_free,
            RetryClass::Failed => {
                all_free.min((limits::OUTBOX_IN_FLIGHT / 2).saturating_sub(failed))
            }
        }
    }

    /// What the store needs to know when it leases rows.
    fn posts_in_flight(&self) -> PostsInFlight {
        let mut posts = PostsInFlight::default();
        for (row_id, post) in self.in_flight().iter() {
            posts.add_post(*row_id, post.owner, post.has_failed_before);
        }
        posts
    }
}

/// One attempt in flight; however it ends, dropping this frees its slot and wakes the worker.
struct OutboxSlot {
    delivery: Delivery,
    row_id: OutboxRowId,
}

impl Drop for OutboxSlot {
    fn drop(&mut self) {
        let worker = self.delivery.outbox_worker();
        worker.in_flight().remove(&self.row_id);
        worker.ended_count.send_modify(|count| *count += 1);
        worker.wake();
    }
}

/// Leases due rows and starts an attempt for each, up to the free slots. Returns how many it started.
pub(crate) async fn start_due_posts(delivery: &Delivery) -> Result<usize> {
    let _fill_guard = delivery.outbox_worker().fill_lock.lock().await;
    if delivery.live_streams().is_draining() {
        return Ok(0);
    }
    // New rows first: they are more likely to succeed.
    Ok(lease_and_start(delivery, RetryClass::New).await?
        + lease_and_start(delivery, RetryClass::Failed).await?)
}

async fn lease_and_start(delivery: &Delivery, retry_class: RetryClass) -> Result<usize> {
    let mut started_count = 0;
    // Behind the rows of an owner whose share is full there may be those of others. Each further round leaves such an owner out.
    loop {
        let leased = lease_rows(delivery, retry_class).await?;
        started_count += leased.rows.len();
        let goes_on = leased.reached_share && !leased.rows.is_empty();
        for leased_row in leased.rows {
            spawn_attempt(delivery, leased_row);
        }
        if !goes_on {
            return Ok(started_count);
        }
    }
}

async fn lease_rows(delivery: &Delivery, retry_class: RetryClass) -> Result<LeasedRows> {
    let nothing = LeasedRows {
        rows: Vec::new(),
        reached_share: false,
    };
    let worker = delivery.outbox_worker();
    let free_slots = worker.free_slots(retry_class);
    if free_slots == 0 {
        return Ok(nothing);
    }
    let in_flight = worker.posts_in_flight();
    let known = in_flight.clone();
    let now = delivery.0.clock.now();
    let max_looked = in_flight.len() + 1;
    let due_ids = delivery
        .store()
        .read(async move |tx| {
            Ok(rows::list_due_row_ids(tx, now, retry_class, max_looked, &known).await?)
        })
        .await?;
    if due_ids.iter().all(|id| in_flight.contains(*id)) {
        return Ok(nothing);
    }
    let lease = worker.lease;
    delivery
        .store()
        .write(async move |txn| {
            let now = txn.now();
            let in_flight = in_flight.clone();
            Ok(
                rows::lease_due_rows(&txn.tx, now, lease, retry_class, free_slots, in_flight)
                    .await?,
            )
        })
        .await
}

fn spawn_attempt(delivery: &Delivery, leased_row: OutboxRow) {
    let post_in_flight = PostInFlight {
        owner: leased_row.owner,
        has_failed_before: leased_row.attempts > 0,
    };
    delivery
        .outbox_worker()
        .in_flight()
        .insert(leased_row.id, post_in_flight);
    let slot = OutboxSlot {
        delivery: delivery.clone(),
        row_id: leased_row.id,
    };
    tokio::spawn(async move {
        if let Err(error) = outbox::attempt_post(&slot.delivery, leased_row).await {
            tracing::warn!(%error, cause = error.cause, "a post from the outbox will be tried again");
        }
    });
}

/// Posts everything that is due and completes when nothing is due or in flight.
pub(crate) async fn run_due_posts(delivery: &Delivery) -> Result<()> {
    let worker = delivery.outbox_worker();
    let mut ended_count = worker.ended_count.subscribe();
    loop {
        ended_count.borrow_and_update();
        let started_count = start_due_posts(delivery).await?;
        let is_idle = worker.in_flight().is_empty();
        // An attempt that ended meanwhile may have freed its lane for the next row. The sender lives as long as the worker.
        if started_count == 0 && is_idle && !ended_count.has_changed().unwrap_or(false) {
            return Ok(());
        }
        if !is_idle {
            let _ = ended_count.changed().await;
        }
    }
}
