//! What has gathered, run in one transaction, and again from its beginning when the database undid it (D-88).

use super::log::LogEntry;
use super::sql_value::ConnectionFault;
use super::write_request::WriteRequest;
use super::write_txn::WriteTxn;
use super::{DbConnection, DbError, participant_index};
use chorus_wire::{Error, limits};
use std::ops::Range;
use std::time::Duration;
use tokio::sync::mpsc;

/// Kept as it came until it is committed: whatever runs may have to run again.
#[derive(Default)]
pub(super) struct WriteGroup {
    requests: Vec<WriteRequest>,
    /// Which entries are whose, of those that have run.
    entry_ranges: Vec<Range<usize>>,
}

/// Why a group was not committed.
pub(super) struct GroupError {
    pub failure: CommitFailure,
    pub cause: DbError,
}

/// What became of a group that was not committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitFailure {
    /// The database undid it for the sake of another.
    RolledBack,
    /// The connection broke before the commit was on its way: nothing of it can take effect.
    ConnectionLost,
    /// Nothing of it was done, and another attempt would meet the same.
    Rejected,
    /// The commit was on its way when its answer was lost. It may have taken effect, so it is never run again: whoever wrote
    /// would be heard twice.
    OutcomeUnknown,
}

impl GroupError {
    pub fn rejected_with(cause: DbError) -> Self {
        Self {
            failure: CommitFailure::Rejected,
            cause,
        }
    }

    /// `sent`: the commit was on its way.
    pub fn classify_failure(tx: &DbConnection<'_>, commit_sent: bool, cause: DbError) -> Self {
        let failure = match (tx.take_fault(), commit_sent) {
            // A server that says so has undone it, also when it says so at the commit.
            (Some(ConnectionFault::RolledBack), _) => CommitFailure::RolledBack,
            (Some(ConnectionFault::ConnectionLost), false) => CommitFailure::ConnectionLost,
            (None, false) => CommitFailure::Rejected,
            (Some(ConnectionFault::ConnectionLost) | None, true) => CommitFailure::OutcomeUnknown,
        };
        Self { failure, cause }
    }
}

/// How long to wait before the next run: longer each time, and never as long as whoever else was undone.
pub(super) fn retry_backoff(attempt: u32) -> Duration {
    limits::WRITE_GROUP_RETRY_PAUSE
        .saturating_mul(1 << attempt.min(8))
        .mul_f64(0.5 + rand::random::<f64>())
}

impl WriteGroup {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes what waits. How much there was; nothing when there will be no more.
    pub async fn receive_requests(&mut self, queue: &mut mpsc::Receiver<WriteRequest>) -> usize {
        queue
            .recv_many(&mut self.requests, limits::WRITE_GROUP_REQUESTS)
            .await
    }

    /// Everything between `begin` and `commit`. On its `last` run, work that the database undoes is undone alone where that is
    /// possible, so that it does not take its neighbours down with it.
    pub async fn run_requests(
        &mut self,
        txn: &mut WriteTxn<'_>,
        is_last_attempt: bool,
    ) -> Result<(), DbError> {
        self.entry_ranges.clear();
        for request in &mut self.requests {
            let first_entry = txn.entries.len();
            match request {
                // Only texts that are shared, so a second one costs nothing.
                WriteRequest::Append(new, _) => drop(txn.append_entry(new.clone())),
                WriteRequest::Work(work) => {
                    // Before the savepoint: the work sees what came before it, and undoes only what is its own.
                    txn.insert_pending_entries().await?;
                    let snapshot = txn.take_snapshot();
                    txn.tx.control_transaction("savepoint work").await?;
                    if !work.run(txn).await {
                        if !is_last_attempt && txn.tx.has_fault() {
                            return Err(DbError::Unavailable("a piece of work was undone".into()));
                        }
                        txn.tx
                            .control_transaction("rollback to savepoint work")
                            .await?;
                        txn.restore_snapshot(snapshot);
                        // It failed alone: whatever comes of the group now is not for that.
                        let _ = txn.tx.take_fault();
                    }
                    txn.tx.control_transaction("release savepoint work").await?;
                }
            }
            self.entry_ranges.push(first_entry..txn.entries.len());
        }
        txn.insert_pending_entries().await?;
        let now = txn.now();
        participant_index::index_new_entries(&txn.tx, &mut txn.head, now).await?;
        txn.counter_deltas.store_deltas(&txn.tx).await
    }

    /// Answers everybody; `failed` is why nothing was committed.
    pub fn send_replies(&mut self, entries: &[LogEntry], group_error: Option<&Error>) {
        let mut entry_ranges = self.entry_ranges.drain(..);
        for request in self.requests.drain(..) {
            let entry_range = entry_ranges.next().unwrap_or_default();
            request.send_reply(entries.get(entry_range).unwrap_or_default(), group_error);
        }
    }
}
