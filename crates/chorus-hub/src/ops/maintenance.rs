//! What the hub does by itself: settling what a crash left open, and trimming what is past its time.

use crate::delivery::pool;
use crate::envelope::record_outcome;
use crate::market::jobs;
use crate::store::{messages, outbox, retention};
use crate::{Hub, Result};
use chorus_wire::message::Delivery;
use chorus_wire::{Code, limits, time::Micros};
use std::time::Duration;

/// How often the hub looks for something to trim.
const EVERY: Duration = Duration::from_secs(60);
/// How often it looks for errands when nobody rings.
const ERRANDS_EVERY: Duration = Duration::from_secs(1);
/// Messages settled in one transaction after a crash.
const AT_ONCE: usize = 500;

/// A webhook that was under way when the hub died has no outcome that anybody knows: it failed, and its sender may retry.
/// A hub that is alone knows that nobody waits for it; among others, what no hub can still be waiting for is past its time.
pub(crate) async fn recover(hub: &Hub) -> Result<()> {
    let salt = hub.store().salt;
    let until = match hub.mesh() {
        None => {
            hub.store()
                .write(async move |txn| Ok(outbox::free(&txn.tx).await?))
                .await?;
            Micros(i64::MAX)
        }
        Some(_) => hub
            .clock()
            .now()
            .minus(limits::WEBHOOK_STREAM_DEADLINE + hub.options().webhook_timeout),
    };
    loop {
        let settled = hub
            .store()
            .write(async move |txn| {
                let open = messages::pending(&txn.tx, until, AT_ONCE).await?;
                for seq in &open {
                    let detail =
                        "the hub stopped before the receiver's endpoint answered".to_owned();
                    let failed = Delivery::Failed {
                        error_code: Code::AgentUnreachable.as_str().into(),
                        detail,
                    };
                    record_outcome(txn, salt, *seq, &failed).await?;
                }
                Ok(open.len())
            })
            .await?;
        if settled < AT_ONCE {
            return Ok(());
        }
    }
}

/// Trims until there is nothing left to trim, a small transaction at a time.
pub(crate) async fn pass(hub: &Hub) -> Result<()> {
    hub.frames().sweep(hub.clock().steady());
    let keep = hub
        .options()
        .retain
        .map(|retain| hub.clock().now().minus(retain));
    if hub.mesh().is_some() {
        recover(hub).await?;
    }
    while hub
        .store()
        .write(async move |txn| Ok(retention::step(txn, keep).await?))
        .await?
    {}
    jobs::pass(hub).await
}

/// What cannot wait for a minute: deadlines of jobs, and what is owed to others.
fn errands(hub: &Hub) {
    let (bell, hub) = (hub.bell().clone(), hub.downgrade());
    tokio::spawn(async move {
        loop {
            // Woken or not, it looks: the bell is a hint, the table is the truth.
            let _ = tokio::time::timeout(ERRANDS_EVERY, bell.notified()).await;
            let Some(hub) = hub() else { return };
            if hub.bus().draining() {
                return;
            }
            for done in [jobs::pass(&hub).await, pool::fill(&hub).await.map(drop)] {
                if let Err(error) = done {
                    tracing::warn!(%error, cause = error.cause, "errands will be tried again");
                }
            }
        }
    });
}

/// Goes on for as long as the hub is there.
pub(crate) fn start(hub: &Hub) {
    errands(hub);
    let hub = hub.downgrade();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(hub) = hub() else { return };
            if hub.bus().draining() {
                return;
            }
            if let Err(error) = pass(&hub).await {
                tracing::warn!(%error, cause = error.cause, "maintenance will try again");
            }
        }
    });
}
