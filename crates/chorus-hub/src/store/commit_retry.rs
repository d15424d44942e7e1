//! Commits a write group, and runs it again when the database rolled it back or the connection was lost before the commit (D-88).

use super::write_group::{CommitFailure, GroupError, WriteGroup};
use super::writer::{CommittedGroup, StoreWriter};
use super::{DbError, postgres};
use crate::limits;
use std::time::Duration;

impl StoreWriter {
    /// Drops the connection when the database does not answer in time. The next group sees whether this one was committed after
    /// all: the old connection holds the advisory lock until that is decided, so the next group cannot begin earlier.
    pub(super) async fn commit_with_timeout(
        &mut self,
        group: &mut WriteGroup,
    ) -> Result<CommittedGroup, GroupError> {
        match tokio::time::timeout(postgres::RESPONSE_TIMEOUT, self.commit_with_retry(group)).await
        {
            Ok(committed) => committed,
            Err(_) => {
                self.connection.disconnect();
                let failure = if self.commit_sent {
                    CommitFailure::OutcomeUnknown
                } else {
                    CommitFailure::Rejected
                };
                Err(GroupError {
                    failure,
                    cause: DbError::Unavailable("the database did not answer".into()),
                })
            }
        }
    }

    /// D-88: runs a group again that the database rolled back, or whose connection was lost before its commit was sent.
    pub(super) async fn commit_with_retry(
        &mut self,
        group: &mut WriteGroup,
    ) -> Result<CommittedGroup, GroupError> {
        let mut attempt = 0;
        let mut reconnected = false;
        loop {
            let is_last_attempt = attempt == limits::WRITE_GROUP_RETRIES;
            let failed = match self.commit_group(group, is_last_attempt).await {
                Ok(committed) => return Ok(committed),
                Err(failed) => failed,
            };
            match failed.failure {
                CommitFailure::RolledBack if !is_last_attempt => {
                    tracing::warn!(cause = %failed.cause, "the database rolled back a write group; it runs again");
                    tokio::time::sleep(retry_backoff(attempt)).await;
                    attempt += 1;
                }
                // Once: if the connection is lost again, the database has a fault and the waiting requests fail.
                CommitFailure::ConnectionLost if !reconnected => {
                    tracing::warn!(cause = %failed.cause, "the connection was lost before the commit; the write group runs again");
                    self.connection.disconnect();
                    reconnected = true;
                }
                CommitFailure::RolledBack
                | CommitFailure::ConnectionLost
                | CommitFailure::Rejected
                | CommitFailure::OutcomeUnknown => return Err(failed),
            }
        }
    }
}

/// The pause before the next attempt. It grows with each attempt, and is random so that two hubs do not collide again.
fn retry_backoff(attempt: u32) -> Duration {
    limits::WRITE_GROUP_RETRY_PAUSE
        .saturating_mul(1 << attempt.min(8))
        .mul_f64(0.5 + crate::random::random_value::<f64>())
}
