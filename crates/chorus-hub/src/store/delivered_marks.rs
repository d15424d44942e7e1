//! Marks messages as delivered that streams have written. A mark that the database does not take is kept and tried again: the
//! reader has the message and never asks for it a second time.

use super::write_until_done::WriteBackoff;
use super::{LogSeq, Store, messages};
use crate::limits;
use chorus_wire::ErrorCode;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The messages that are still to be marked.
#[derive(Default)]
pub(super) struct DeliveredMarks(Mutex<MarksState>);

#[derive(Default)]
struct MarksState {
    seqs: BTreeSet<LogSeq>,
    /// A task is writing them.
    is_running: bool,
}

impl DeliveredMarks {
    fn lock_state(&self) -> MutexGuard<'_, MarksState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds messages. True when the caller has to start the task that writes them.
    fn add_seqs(&self, seqs: Vec<LogSeq>) -> bool {
        let mut state = self.lock_state();
        let free = limits::DELIVERED_MARKS_WAITING.saturating_sub(state.seqs.len());
        let dropped = seqs.len().saturating_sub(free);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "delivered messages stay queued until they are replayed"
            );
        }
        state.seqs.extend(seqs.into_iter().take(free));
        !state.seqs.is_empty() && !std::mem::replace(&mut state.is_running, true)
    }

    /// The next messages to mark. With none left the task has to end, and the next message starts another.
    fn next_batch(&self) -> Option<Vec<LogSeq>> {
        let mut state = self.lock_state();
        state.is_running = !state.seqs.is_empty();
        let batch = state.seqs.iter().take(limits::DELIVERED_MARKS_BATCH);
        state.is_running.then(|| batch.copied().collect())
    }

    fn remove_batch(&self, batch: &[LogSeq]) {
        let mut state = self.lock_state();
        for seq in batch {
            state.seqs.remove(seq);
        }
    }
}

impl Store {
    /// Sets the delivery time of messages that a stream has written, now or as soon as the database takes it.
    pub fn mark_delivered(self: &Arc<Self>, seqs: Vec<LogSeq>) {
        if self.delivered_marks.add_seqs(seqs) {
            tokio::spawn(write_marks(Arc::downgrade(self)));
        }
    }
}

async fn write_marks(store: Weak<Store>) {
    let mut backoff = WriteBackoff::default();
    while let Some(open_store) = store.upgrade() {
        let Some(batch) = open_store.delivered_marks.next_batch() else {
            return;
        };
        let seqs = batch.clone();
        let marked = open_store
            .write(async move |txn| Ok(messages::mark_messages_delivered(txn, &seqs).await?))
            .await;
        match marked {
            Ok(()) => {
                open_store.delivered_marks.remove_batch(&batch);
                backoff = WriteBackoff::default();
            }
            Err(error) if error.code == ErrorCode::Unavailable => {
                if open_store.writer.is_closed() {
                    return;
                }
                tracing::debug!(
                    cause = error.cause,
                    "delivered messages are not marked yet; it will be tried again"
                );
                drop(open_store);
                backoff.wait().await;
            }
            Err(error) => {
                tracing::error!(%error, cause = error.cause, "delivered messages could not be marked");
                open_store.delivered_marks.remove_batch(&batch);
            }
        }
    }
}
