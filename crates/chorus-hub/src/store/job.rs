//! A piece of work that waits for its group, and how it is answered when the group is committed or is not.

use super::log::{Entry, NewEntry};
use super::writer::Txn;
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

pub(super) trait Work: Send {
    /// Runs inside the transaction; what comes back is answered after the commit.
    fn run<'a>(self: Box<Self>, txn: &'a mut Txn<'_>) -> LocalBoxFuture<'a, Box<dyn Answer>>;
}

pub(super) trait Answer: Send {
    fn is_error(&self) -> bool;
    /// `entries` are those that the work appended; `failed` is why the group was not committed.
    fn send(self: Box<Self>, entries: &[Entry], failed: Option<&Error>);
}

pub(super) struct Task<F, T> {
    pub work: F,
    pub to: oneshot::Sender<Result<(T, Vec<Entry>)>>,
}

impl<F, T> Work for Task<F, T>
where
    T: Send + 'static,
    F: AsyncFnOnce(&mut Txn<'_>) -> Result<T> + Send + 'static,
{
    fn run<'a>(self: Box<Self>, txn: &'a mut Txn<'_>) -> LocalBoxFuture<'a, Box<dyn Answer>> {
        Box::pin(async move {
            // A bug in one piece of work must not take the writer, and with it the hub, down.
            let result = AssertUnwindSafe((self.work)(txn)).catch_unwind().await;
            let result = result.unwrap_or_else(|_| Err(Error::internal("a write panicked")));
            Box::new(Done { result, to: self.to }) as Box<dyn Answer>
        })
    }
}

struct Done<T> {
    result: Result<T>,
    to: oneshot::Sender<Result<(T, Vec<Entry>)>>,
}

impl<T: Send> Answer for Done<T> {
    fn is_error(&self) -> bool {
        self.result.is_err()
    }

    fn send(self: Box<Self>, entries: &[Entry], failed: Option<&Error>) {
        let answer = match (self.result, failed) {
            (Ok(_), Some(failed)) => Err(failed.clone()),
            (Ok(value), None) => Ok((value, entries.to_vec())),
            (Err(error), Some(_) | None) => Err(error),
        };
        // A requester that is gone needs no answer.
        let _ = self.to.send(answer);
    }
}
