//! A piece of work that waits for its group, runs in it as often as it must, and is answered when the group is committed or is not.

use super::log::{LogEntry, NewLogEntry};
use super::write_txn::WriteTxn;
use crate::Result;
use chorus_wire::Error;
use futures_util::{FutureExt, future::LocalBoxFuture};
use std::panic::AssertUnwindSafe;
use tokio::sync::oneshot;

/// Work of any kind, waiting for its group.
pub(super) enum WriteRequest {
    Append(NewLogEntry, oneshot::Sender<Result<LogEntry>>),
    Work(Box<dyn WriteWork>),
}

impl WriteRequest {
    /// `entries` are those that it appended; `failed` is why the group was not committed.
    pub fn send_reply(self, entries: &[LogEntry], group_error: Option<&Error>) {
        match self {
            WriteRequest::Append(_, reply_to) => {
                let entry = match (group_error, entries.first()) {
                    (None, Some(entry)) => Ok(entry.clone()),
                    (Some(failed), Some(_) | None) => Err(failed.clone()),
                    (None, None) => Err(Error::internal(
                        "an entry was lost between commit and answer",
                    )),
                };
                // A requester that is gone needs no answer.
                let _ = reply_to.send(entry);
            }
            WriteRequest::Work(work) => work.send_reply(entries, group_error),
        }
    }
}

pub(super) trait WriteWork: Send {
    /// Runs inside a transaction; false when it is to be undone. It runs again from its beginning when the transaction is
    /// undone as a whole (D-88), and what it came to last is what counts.
    fn run<'a>(&'a mut self, txn: &'a mut WriteTxn<'_>) -> LocalBoxFuture<'a, bool>;
    fn send_reply(self: Box<Self>, entries: &[LogEntry], group_error: Option<&Error>);
}

/// `work` is called by reference, so that it can change nothing of its own: a second run begins where the first one did.
pub(super) struct WriteTask<F, T> {
    work: F,
    result: Option<Result<T>>,
    reply_to: oneshot::Sender<Result<(T, Vec<LogEntry>)>>,
}

impl<F, T> WriteTask<F, T> {
    pub fn new(work: F, reply_to: oneshot::Sender<Result<(T, Vec<LogEntry>)>>) -> Self {
        Self {
            work,
            result: None,
            reply_to,
        }
    }
}

impl<F, T> WriteWork for WriteTask<F, T>
where
    T: Send + 'static,
    F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
{
    fn run<'a>(&'a mut self, txn: &'a mut WriteTxn<'_>) -> LocalBoxFuture<'a, bool> {
        Box::pin(async move {
            // A bug in one piece of work must not take the writer, and with it the hub, down.
            let result = AssertUnwindSafe((self.work)(txn)).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(Error::internal("a write panicked")));
            self.result.insert(result).is_ok()
        })
    }

    fn send_reply(self: Box<Self>, entries: &[LogEntry], group_error: Option<&Error>) {
        let reply = match (group_error, self.result) {
            // Also for one that was refused: what it was refused for may be what a neighbour wrote, and that is undone.
            (Some(failed), Some(_) | None) => Err(failed.clone()),
            (None, Some(result)) => result.map(|value| (value, entries.to_vec())),
            (None, None) => Err(Error::internal("a write was committed without having run")),
        };
        // A requester that is gone needs no answer.
        let _ = self.reply_to.send(reply);
    }
}
