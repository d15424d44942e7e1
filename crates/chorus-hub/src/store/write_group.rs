//! A write group: the waiting write requests, run in one transaction, and run again when the database rolls it back (D-88).

use super::log::LogEntry;
use super::transaction_fault::TransactionFault;
use super::write_request::WriteRequest;
use super::write_txn::WriteTxn;
use super::{DbConnection, DbError, participant_index};
use crate::limits;
use chorus_wire::Error;
use std::ops::Range;
use tokio::sync::mpsc;

/// The requests of one group commit. They are kept until the commit, because the group may have to run again.
#[derive(Default)]
pub(super) struct WriteGroup {
    requests: Vec<WriteRequest>,
    /// For each request that has run, the range of the entries that it appended.
    entry_ranges: Vec<Range<usize>>,
}

/// Why a group was not committed.
pub(super) struct GroupError {
    pub failure: CommitFailure,
    pub cause: DbError,
}

/// How a commit failed, which decides whether the group runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitFailure {
    /// The database rolled the group back because of another transaction.
    RolledBack,
    /// The connection was lost before the commit was sent, so the group has no effect.
    ConnectionLost,
    /// The group had no effect, and another attempt would fail the same way.
    Rejected,
    /// The commit was sent and its answer was lost. It may have taken effect, so the group never runs again: its messages would
    /// be delivered twice.
    OutcomeUnknown,
}

impl GroupError {
    pub fn rejected_with(cause: DbError) -> Self {
        Self {
            failure: CommitFailure::Rejected,
            cause,
        }
    }

    /// Classifies an error by the fault of the connection and by whether the commit had been sent.
    pub fn classify_failure(tx: &DbConnection<'_>, commit_sent: bool, cause: DbError) -> Self {
        let failure = match (tx.take_fault(), commit_sent) {
            // The server reported the rollback itself, so the outcome is known even at the commit.
            (Some(TransactionFault::RolledBack), _) => CommitFailure::RolledBack,
            (Some(TransactionFault::ConnectionLost), false) => CommitFailure::ConnectionLost,
            (None, false) => CommitFailure::Rejected,
            (Some(TransactionFault::ConnectionLost) | None, true) => CommitFailure::OutcomeUnknown,
        };
        Self { failure, cause }
    }
}

impl WriteGroup {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Waits for requests and takes all that are queued, up to the limit. Returns 0 when the queue is closed.
    pub async fn receive_requests(&mut self, queue: &mut mpsc::Receiver<WriteRequest>) -> usize {
        queue
            .recv_many(&mut self.requests, limits::WRITE_GROUP_REQUESTS)
            .await
    }

    /// Runs everything between `begin` and `commit`. On the last attempt, a request that the database rolls back is rolled back
    /// alone where that is possible, so that the other requests of the group still commit.
    pub async fn run_requests(
        &mut self,
        txn: &mut WriteTxn<'_>,
        is_last_attempt: bool,
    ) -> Result<(), DbError> {
        self.entry_ranges.clear();
        for request in &mut self.requests {
            let first_entry = txn.entries.len();
            match request {
                // The texts are shared (`Arc`), so the clone is cheap.
                WriteRequest::Append(new, _) => drop(txn.append_entry(new.clone())),
                WriteRequest::Work(work) => {
                    // Before the savepoint: the work sees the entries before it, and a rollback removes only its own.
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
                        // Only this request failed; its fault must not count for the group.
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

    /// Replies to all requests; `group_error` is why the group was not committed.
    pub fn send_replies(&mut self, entries: &[LogEntry], group_error: Option<&Error>) {
        let mut entry_ranges = self.entry_ranges.drain(..);
        for request in self.requests.drain(..) {
            let entry_range = entry_ranges.next().unwrap_or_default();
            request.send_reply(entries.get(entry_range).unwrap_or_default(), group_error);
        }
    }
}
