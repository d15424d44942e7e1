//! A piece of work that waits for its group, runs in it as often as it must, and is answered when the group is committed or is not.

use super::log::{Entry, NewEntry};
use super::txn::Txn;
use crate::Result;
use chorus_wire::Error;
use futures_util::{FutureExt, future::LocalBoxFuture};
use std::panic::AssertUnwindSafe;
use tokio::sync::oneshot;

/// Work of any kind, waiting for its group.
pub(super) enum Job {
    Append(NewEntry, oneshot::Sender<Result<Entry>>),
    Work(Box<dyn Work>),
}

impl Job {
    /// `entries` are those that it appended; `failed` is why the group was not committed.
    pub fn answer(self, entries: &[Entry], failed: Option<&Error>) {
        match self {
            Job::Append(_, to) => {
                let entry = match (failed, entries.first()) {
                    (None, Some(entry)) => Ok(entry.clone()),
                    (Some(failed), Some(_) | None) => Err(failed.clone()),
                    (None, None) => Err(Error::internal(
                        "an entry was lost between commit and answer",
                    )),
                };
                // A requester that is gone needs no answer.
                let _ = to.send(entry);
            }
            Job::Work(work) => work.answer(entries, failed),
        }
    }
}

pub(super) trait Work: Send {
    /// Runs inside a transaction; false when it is to be undone. It runs again from its beginning when the transaction is
    /// undone as a whole (D-88), and what it came to last is what counts.
    fn run<'a>(&'a mut self, txn: &'a mut Txn<'_>) -> LocalBoxFuture<'a, bool>;
    fn answer(self: Box<Self>, entries: &[Entry], failed: Option<&Error>);
}

/// `work` is called by reference, so that it can change nothing of its own: a second run begins where the first one did.
pub(super) struct Task<F, T> {
    work: F,
    result: Option<Result<T>>,
    to: oneshot::Sender<Result<(T, Vec<Entry>)>>,
}

impl<F, T> Task<F, T> {
    pub fn new(work: F, to: oneshot::Sender<Result<(T, Vec<Entry>)>>) -> Self {
        Self {
            work,
            result: None,
            to,
        }
    }
}

impl<F, T> Work for Task<F, T>
where
    T: Send + 'static,
    F: AsyncFn(&mut Txn<'_>) -> Result<T> + Send + 'static,
{
    fn run<'a>(&'a mut self, txn: &'a mut Txn<'_>) -> LocalBoxFuture<'a, bool> {
        Box::pin(async move {
            // A bug in one piece of work must not take the writer, and with it the hub, down.
            let result = AssertUnwindSafe((self.work)(txn)).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(Error::internal("a write panicked")));
            self.result.insert(result).is_ok()
        })
    }

    fn answer(self: Box<Self>, entries: &[Entry], failed: Option<&Error>) {
        let answer = match (failed, self.result) {
            // Also for one that was refused: what it was refused for may be what a neighbour wrote, and that is undone.
            (Some(failed), Some(_) | None) => Err(failed.clone()),
            (None, Some(result)) => result.map(|value| (value, entries.to_vec())),
            (None, None) => Err(Error::internal("a write was committed without having run")),
        };
        // A requester that is gone needs no answer.
        let _ = self.to.send(answer);
    }
}
