//! Reads and writes without their types: the store's machinery is compiled once, not once for each of several hundred closures.

use super::DbConnection;
use super::write_txn::WriteTxn;
use crate::Result;
use chorus_wire::Error;
use futures_util::future::LocalBoxFuture;
use std::any::Any;
use std::marker::PhantomData;

/// What a read or a write returned; `take_answer` gives its type back.
pub(super) type AnyAnswer = Box<dyn Any + Send>;

/// A read, which runs once.
pub(super) type ErasedRead =
    Box<dyn for<'c> FnOnce(&'c DbConnection<'c>) -> LocalBoxFuture<'c, Result<AnyAnswer>> + Send>;

/// A write, which may run more than once (D-88).
pub(super) trait ErasedWrite: Send {
    fn run<'a>(&'a self, txn: &'a mut WriteTxn<'_>) -> LocalBoxFuture<'a, Result<AnyAnswer>>;
}

pub(super) fn erase_read<T, F>(work: F) -> ErasedRead
where
    T: Send + 'static,
    F: AsyncFnOnce(&DbConnection<'_>) -> Result<T> + Send + 'static,
{
    Box::new(move |connection| {
        Box::pin(async move {
            let answer = work(connection).await?;
            Ok(Box::new(answer) as AnyAnswer)
        })
    })
}

pub(super) fn erase_write<T, F>(work: F) -> Box<dyn ErasedWrite>
where
    T: Send + 'static,
    F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
{
    Box::new(TypedWrite {
        work,
        answer: PhantomData,
    })
}

/// Gives an answer its type back: the one that the work was erased with.
pub(super) fn take_answer<T: 'static>(answer: AnyAnswer) -> Result<T> {
    answer
        .downcast()
        .map(|answer| *answer)
        .map_err(|_| Error::internal("the store answered with a value of another type"))
}

struct TypedWrite<T, F> {
    work: F,
    answer: PhantomData<fn() -> T>,
}

impl<T, F> ErasedWrite for TypedWrite<T, F>
where
    T: Send + 'static,
    F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
{
    fn run<'a>(&'a self, txn: &'a mut WriteTxn<'_>) -> LocalBoxFuture<'a, Result<AnyAnswer>> {
        Box::pin(async move {
            let answer = (self.work)(txn).await?;
            Ok(Box::new(answer) as AnyAnswer)
        })
    }
}
