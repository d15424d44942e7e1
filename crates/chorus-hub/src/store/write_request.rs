//! A write request: a queued closure or entry. It runs in a write group, maybe more than once; the reply follows the commit.

use super::erased_work::{AnyAnswer, ErasedWrite};
use super::log::{LogEntry, NewLogEntry};
use super::write_txn::WriteTxn;
use crate::Result;
use crate::telemetry::{self, SpanContext};
use chorus_wire::Error;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use tokio::sync::oneshot;

/// One queued write.
pub(super) enum WriteRequest {
    Append(NewLogEntry, oneshot::Sender<Result<LogEntry>>),
    Work(WriteTask),
}

impl WriteRequest {
    /// Sends the result. `entries` are those that the request appended; `group_error` is why the group was not committed.
    pub fn send_reply(self, entries: &[LogEntry], group_error: Option<&Error>) {
        match self {
            WriteRequest::Append(_, reply_to) => {
                let entry = match (group_error, entries.first()) {
                    (None, Some(entry)) => Ok(entry.clone()),
                    (Some(error), Some(_) | None) => Err(error.clone()),
                    (None, None) => Err(Error::internal(
                        "an entry was lost between commit and answer",
                    )),
                };
                // The caller may have stopped waiting.
                let _ = reply_to.send(entry);
            }
            WriteRequest::Work(work) => work.send_reply(entries, group_error),
        }
    }
}

/// The answer of a write, with the entries that it appended.
pub(super) type WriteReply = Result<(AnyAnswer, Vec<LogEntry>)>;

/// A write with its reply channel.
pub(super) struct WriteTask {
    work: Box<dyn ErasedWrite>,
    result: Option<Result<AnyAnswer>>,
    /// The span of the caller: the work runs on the thread of the writer, where none is current.
    span_context: Option<SpanContext>,
    reply_to: oneshot::Sender<WriteReply>,
}

impl WriteTask {
    pub fn new(work: Box<dyn ErasedWrite>, reply_to: oneshot::Sender<WriteReply>) -> Self {
        Self {
            work,
            result: None,
            span_context: telemetry::current_context(),
            reply_to,
        }
    }

    /// Runs inside a transaction; false when its changes must be rolled back. It runs again from the start when the whole
    /// transaction is rolled back (D-88); the result of the last run counts.
    pub async fn run(&mut self, txn: &mut WriteTxn<'_>) -> bool {
        txn.set_span_context(self.span_context);
        // A panic in one request must not stop the writer, and with it the hub.
        let result = AssertUnwindSafe(async { self.work.run(txn).await })
            .catch_unwind()
            .await;
        let result = result.unwrap_or_else(|_| Err(Error::internal("a write panicked")));
        self.result.insert(result).is_ok()
    }

    fn send_reply(self, entries: &[LogEntry], group_error: Option<&Error>) {
        let reply = match (group_error, self.result) {
            // Also for a request that failed by itself: the cause may be a write of another request, which is now rolled back.
            (Some(error), Some(_) | None) => Err(error.clone()),
            (None, Some(result)) => result.map(|answer| (answer, entries.to_vec())),
            (None, None) => Err(Error::internal("a write was committed without having run")),
        };
        // The caller may have stopped waiting.
        let _ = self.reply_to.send(reply);
    }
}
