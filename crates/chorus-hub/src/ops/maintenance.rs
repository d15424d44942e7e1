//! What the hub does by itself: settling what a crash left open, and trimming what is past its time.

use crate::delivery::outbox_pool;
use crate::envelope::record_outcome;
use crate::market::jobs;
use crate::store::{messages, outbox, retention};
use crate::{Hub, Result};
use chorus_wire::message::DeliveryOutcome;
use chorus_wire::{Code, limits, time::UnixMicros};
use std::time::Duration;

/// How often the hub looks for something to trim.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
/// How often it looks for errands when nobody rings.
const DUE_WORK_INTERVAL: Duration = Duration::from_secs(1);
/// Messages settled in one transaction after a crash.
const RECOVERY_BATCH: usize = 500;

/// A webhook that was under way when the hub died has no outcome that anybody knows: it failed, and its sender may retry.
/// A hub that is alone knows that nobody waits for it; among others, what no hub can still be waiting for is past its time.
pub(crate) async fn fail_interrupted_webhooks(hub: &Hub) -> Result<()> {
    let salt = hub.store().trace_salt;
    let pending_before = match hub.cluster() {
        None => {
            hub.store()
                .write(async move |txn| Ok(outbox::clear_leases(&txn.tx).await?))
                .await?;
            UnixMicros(i64::MAX)
        }
        Some(_) => hub
            .clock()
            .now()
            .saturating_sub(limits::WEBHOOK_STREAM_DEADLINE + hub.options().webhook_timeout),
    };
    loop {
        let failed_count = hub
            .store()
            .write(async move |txn| {
                let pending_seqs =
                    messages::list_pending_webhooks(&txn.tx, pending_before, RECOVERY_BATCH)
                        .await?;
                for seq in &pending_seqs {
                    let detail =
                        "the hub stopped before the receiver's endpoint answered".to_owned();
                    let failed = DeliveryOutcome::Failed {
                        error_code: Code::AgentUnreachable.as_str().into(),
                        detail,
                    };
                    record_outcome(txn, salt, *seq, &failed).await?;
                }
                Ok(pending_seqs.len())
            })
            .await?;
        if failed_count < RECOVERY_BATCH {
            return Ok(());
        }
    }
}

/// Trims until there is nothing left to trim, a small transaction at a time.
pub(crate) async fn run_maintenance_pass(hub: &Hub) -> Result<()> {
    hub.frames().sweep_expired(hub.clock().monotonic_now());
    let keep_since = hub
        .options()
        .retain
        .map(|retain| hub.clock().now().saturating_sub(retain));
    if hub.cluster().is_some() {
        fail_interrupted_webhooks(hub).await?;
    }
    while hub
        .store()
        .write(async move |txn| Ok(retention::run_retention_step(txn, keep_since).await?))
        .await?
    {}
    jobs::run_due_jobs(hub).await
}

/// What cannot wait for a minute: deadlines of jobs, and what is owed to others.
fn spawn_due_work(hub: &Hub) {
    let (outbox_wakeup, hub) = (hub.outbox_wakeup().clone(), hub.downgrade());
    tokio::spawn(async move {
        loop {
            // Woken or not, it looks: the bell is a hint, the table is the truth.
            let _ = tokio::time::timeout(DUE_WORK_INTERVAL, outbox_wakeup.notified()).await;
            let Some(hub) = hub() else { return };
            if hub.live_streams().is_draining() {
                return;
            }
            for outcome in [
                jobs::run_due_jobs(&hub).await,
                outbox_pool::start_due_posts(&hub).await.map(drop),
            ] {
                if let Err(error) = outcome {
                    tracing::warn!(%error, cause = error.cause, "errands will be tried again");
                }
            }
        }
    });
}

/// Goes on for as long as the hub is there.
pub(crate) fn start_maintenance(hub: &Hub) {
    spawn_due_work(hub);
    let hub = hub.downgrade();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(MAINTENANCE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(hub) = hub() else { return };
            if hub.live_streams().is_draining() {
                return;
            }
            if let Err(error) = run_maintenance_pass(&hub).await {
                tracing::warn!(%error, cause = error.cause, "maintenance will try again");
            }
        }
    });
}
