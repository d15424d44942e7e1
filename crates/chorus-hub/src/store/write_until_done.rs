//! Writes that must not be lost although the database is away: they are tried again, with a growing pause.

use super::{Store, WriteTxn};
use crate::{Result, limits};
use chorus_wire::ErrorCode;
use std::time::Duration;

impl Store {
    /// Like `write`, again and again until it is done or the store is closed: for what follows from something that has already
    /// happened, such as the answer of an endpoint. An attempt whose answer was lost may have been committed, so `work` must
    /// change nothing the second time.
    pub async fn write_until_done<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Clone + Send + 'static,
    {
        let mut backoff = WriteBackoff::default();
        loop {
            match self.write(work.clone()).await {
                Err(error) if error.code == ErrorCode::Unavailable && !self.writer.is_closed() => {
                    backoff.wait().await;
                }
                done => return done,
            }
        }
    }
}

/// The pause between two attempts.
pub(super) struct WriteBackoff(Duration);

impl Default for WriteBackoff {
    fn default() -> Self {
        Self(limits::LOST_WRITE_RETRY_FIRST)
    }
}

impl WriteBackoff {
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(limits::LOST_WRITE_RETRY_MAX);
    }
}
