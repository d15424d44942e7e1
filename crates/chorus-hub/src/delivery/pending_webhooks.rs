//! The webhooks of this hub whose outcome is not stored yet: maintenance leaves them alone, and a stop waits for them.

use super::Delivery;
use crate::store::LogSeq;
use std::collections::BTreeSet;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct PendingWebhooks {
    /// The sequences of their messages.
    seqs: watch::Sender<BTreeSet<LogSeq>>,
}

impl PendingWebhooks {
    pub fn contains(&self, seq: LogSeq) -> bool {
        self.seqs.borrow().contains(&seq)
    }

    pub fn list_seqs(&self) -> Vec<LogSeq> {
        self.seqs.borrow().iter().copied().collect()
    }

    async fn wait_empty(&self) {
        // The sender lives as long as this type.
        let _ = self.seqs.subscribe().wait_for(BTreeSet::is_empty).await;
    }
}

/// One pending webhook, from its first attempt to its stored outcome; dropping it ends the claim.
pub(crate) struct PendingWebhook {
    delivery: Delivery,
    pub seq: LogSeq,
}

impl Drop for PendingWebhook {
    fn drop(&mut self) {
        let seq = self.seq;
        self.delivery
            .pending_webhooks()
            .seqs
            .send_if_modified(|seqs| seqs.remove(&seq));
    }
}

impl Delivery {
    /// Claims the webhook of the message at `seq` for this hub.
    pub(crate) fn claim_webhook(&self, seq: LogSeq) -> PendingWebhook {
        self.pending_webhooks()
            .seqs
            .send_if_modified(|seqs| seqs.insert(seq));
        PendingWebhook {
            delivery: self.clone(),
            seq,
        }
    }

    /// Completes when no webhook of this hub is pending.
    pub async fn wait_webhooks_settled(&self) {
        self.pending_webhooks().wait_empty().await;
    }
}
