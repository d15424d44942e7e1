//! Background work: webhooks without an outcome, retention, due jobs and outbox posts.

use crate::Result;
use crate::context::HubContext;
use crate::delivery::outbox_worker;
use crate::frame::Frames;
use crate::lifecycle;
use crate::market::jobs;
use crate::ops::recover_webhooks;
use crate::store::{counters, outbox, retention};
use std::time::Duration;

/// How often retention runs.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
/// How often due jobs and posts are polled without a wake-up.
const DUE_WORK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs retention to its end, one small transaction at a time, and then what is due.
pub(crate) async fn run_maintenance_pass(hub: &HubContext, frames: &Frames) -> Result<()> {
    frames.sweep_expired();
    let keep_since = hub
        .options()
        .retain
        .map(|retain| hub.clock().now().saturating_sub(retain));
    recover_webhooks::fail_abandoned_webhooks(hub).await?;
    hub.store()
        .write(async |txn| Ok(outbox::resume_rows_of_future(&txn.tx, txn.now()).await?))
        .await?;
    if may_delete(hub).await? {
        while hub
            .store()
            .write(async move |txn| Ok(retention::run_retention_step(txn, keep_since).await?))
            .await?
        {}
    }
    lifecycle::end_expired_keys(hub, frames).await?;
    lifecycle::end_expired_sessions(hub, frames).await?;
    jobs::run_due_jobs(hub).await
}

/// Whether the clock can be trusted with deleting. Records the time of this pass for the next start. While the clock cannot be
/// trusted, the last pass stays as it was, so that a hub that starts then does not trust it either; only a clock that was set back
/// moves it back, or the time since it would seem shorter than it is once the clock is set right.
async fn may_delete(hub: &HubContext) -> Result<bool> {
    let is_trusted = hub.clock_watch().may_delete();
    hub.store()
        .write(async move |txn| {
            let now = txn.now().0;
            let last_pass_at = counters::read_setting(&txn.tx, counters::LAST_PASS_AT).await?;
            if is_trusted || last_pass_at.is_some_and(|last_pass_at| now < last_pass_at) {
                counters::write_setting(&txn.tx, counters::LAST_PASS_AT, now).await?;
            }
            Ok(())
        })
        .await?;
    Ok(is_trusted)
}

/// Job deadlines, ends of keys and outbox posts, which cannot wait for the next maintenance pass.
fn spawn_due_work(frames: &Frames) {
    let wakeup = frames.context().delivery().outbox_wakeup();
    let frames = frames.downgrade();
    tokio::spawn(async move {
        loop {
            // The wake-up is a hint: after the interval the table is read without it.
            let _ = tokio::time::timeout(DUE_WORK_INTERVAL, wakeup.notified()).await;
            let Some(frames) = frames.upgrade() else {
                return;
            };
            let hub = frames.context();
            if hub.live_streams().is_draining() {
                return;
            }
            if let Err(fault) = hub.store().check_data_dir() {
                tracing::error!(fault, "the hub stops");
                hub.report_fatal_fault(fault);
                return;
            }
            for outcome in [
                jobs::run_due_jobs(hub).await,
                lifecycle::end_expired_keys(hub, &frames).await,
                lifecycle::end_expired_sessions(hub, &frames).await,
                outbox_worker::start_due_posts(hub.delivery())
                    .await
                    .map(drop),
            ] {
                if let Err(error) = outcome {
                    tracing::warn!(%error, cause = error.cause, "background work failed and will be tried again");
                }
            }
        }
    });
}

/// Starts the background tasks. They end when the hub is dropped or drains.
pub(crate) fn start_maintenance(frames: &Frames) {
    spawn_due_work(frames);
    let frames = frames.downgrade();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(MAINTENANCE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(frames) = frames.upgrade() else {
                return;
            };
            let hub = frames.context();
            if hub.live_streams().is_draining() {
                return;
            }
            if let Err(error) = run_maintenance_pass(hub, &frames).await {
                tracing::warn!(%error, cause = error.cause, "maintenance will try again");
            }
        }
    });
}
