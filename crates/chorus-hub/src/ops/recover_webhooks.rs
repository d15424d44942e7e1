//! Gives an outcome to messages whose webhook has none and never will: their hub crashed, or stored them without learning of it.

use crate::Result;
use crate::context::HubContext;
use crate::envelope::record_interruption;
use crate::store::{LogSeq, messages, outbox};
use chorus_wire::{limits, time::UnixMicros};

/// Messages failed in one transaction.
const RECOVERY_BATCH: usize = 500;

/// Runs at start. The outcome of a webhook that was in flight when the hub crashed is unknown: it is recorded as failed, and the
/// sender may retry. A hub without peers fails all of them; in a cluster, those that are past every deadline.
pub(crate) async fn fail_interrupted_webhooks(hub: &HubContext) -> Result<()> {
    let pending_before = match hub.cluster() {
        None => {
            hub.store()
                .write(async move |txn| Ok(outbox::clear_leases(&txn.tx).await?))
                .await?;
            UnixMicros(i64::MAX)
        }
        Some(_) => past_every_deadline(hub),
    };
    fail_pending_webhooks(hub, pending_before).await
}

/// Runs with every maintenance pass. Those of this hub that are still in flight, or whose outcome waits for the database, are left
/// alone. A commit whose answer was lost leaves a message that no hub ever posted.
pub(crate) async fn fail_abandoned_webhooks(hub: &HubContext) -> Result<()> {
    let pending_before = match hub.cluster() {
        // All that are in flight are this hub's own; a moment passes between the commit of a message and the claim of its webhook.
        None => hub
            .clock()
            .now()
            .saturating_sub(hub.options().webhook_timeout.max(limits::WEBHOOK_DEADLINE)),
        Some(_) => past_every_deadline(hub),
    };
    fail_pending_webhooks(hub, pending_before).await
}

/// Runs when the hub closes: what could not end in time gets an outcome now, because no other hub knows of it.
pub(crate) async fn fail_cut_webhooks(hub: &HubContext) -> Result<()> {
    let cut = hub.delivery().pending_webhooks().list_seqs();
    fail_webhooks(hub, cut).await
}

/// Webhooks of messages from before this time have ended on every hub.
fn past_every_deadline(hub: &HubContext) -> UnixMicros {
    hub.clock()
        .now()
        .saturating_sub(limits::WEBHOOK_STREAM_DEADLINE + hub.options().webhook_timeout)
}

async fn fail_pending_webhooks(hub: &HubContext, pending_before: UnixMicros) -> Result<()> {
    let mut after = LogSeq::START;
    loop {
        let pending_seqs = hub
            .store()
            .read(async move |tx| {
                Ok(
                    messages::list_pending_webhooks(tx, after, pending_before, RECOVERY_BATCH)
                        .await?,
                )
            })
            .await?;
        let abandoned = pending_seqs
            .iter()
            .copied()
            .filter(|seq| !hub.delivery().pending_webhooks().contains(*seq))
            .collect();
        fail_webhooks(hub, abandoned).await?;
        match pending_seqs.last() {
            Some(last) if pending_seqs.len() == RECOVERY_BATCH => after = *last,
            Some(_) | None => return Ok(()),
        }
    }
}

async fn fail_webhooks(hub: &HubContext, seqs: Vec<LogSeq>) -> Result<()> {
    if seqs.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        messages = seqs.len(),
        "webhooks without an outcome are recorded as failed"
    );
    let salt = hub.store().trace_salt;
    hub.store()
        .write(async move |txn| {
            for seq in &seqs {
                record_interruption(txn, salt, *seq).await?;
            }
            Ok(())
        })
        .await
}
