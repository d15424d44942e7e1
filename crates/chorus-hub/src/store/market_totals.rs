//! The market's sums, written once per group like the counters.

use super::{DbConnection, DbError, SqlParam};
use crate::market::jobs::JobState;

/// What a group adds to the sums of the market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarketTotals {
    /// Hundredths held for jobs.
    pub held_credits: i64,
    /// Hundredths paid from one owner to another.
    pub volume: i64,
    pub jobs: JobCounts,
}

/// Jobs by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCounts {
    pub held: i64,
    pub dispatched: i64,
    pub done: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub expired: i64,
}

impl JobCounts {
    pub fn count_mut(&mut self, state: JobState) -> &mut i64 {
        match state {
            // A job that was only asked for has no row and is counted nowhere.
            JobState::Requested | JobState::Held => &mut self.held,
            JobState::Dispatched => &mut self.dispatched,
            JobState::Done => &mut self.done,
            JobState::Failed => &mut self.failed,
            JobState::Cancelled => &mut self.cancelled,
            JobState::Expired => &mut self.expired,
        }
    }
}

impl MarketTotals {
    pub(super) async fn store_deltas(&self, tx: &DbConnection<'_>) -> Result<(), DbError> {
        const SQL: &str =
            "update market set held = held + $1, volume = volume + $2, held_jobs = held_jobs + $3,
                           dispatched = dispatched + $4, done = done + $5, failed = failed + $6,
                           cancelled = cancelled + $7, expired = expired + $8 where id = 1";
        if *self == Self::default() {
            return Ok(());
        }
        let jobs = &self.jobs;
        let sums = [
            self.held_credits,
            self.volume,
            jobs.held,
            jobs.dispatched,
            jobs.done,
            jobs.failed,
            jobs.cancelled,
            jobs.expired,
        ];
        tx.execute(SQL, &sums.map(SqlParam::Int)).await.map(drop)
    }
}

/// The sums as they stand: `Sums` from nothing.
pub(crate) async fn read_totals(tx: &DbConnection<'_>) -> Result<MarketTotals, DbError> {
    const SQL: &str = "select held, volume, held_jobs, dispatched, done, failed, cancelled, expired from market where id = 1";
    let row = tx
        .query_first(SQL, &[])
        .await?
        .ok_or_else(|| DbError::Other("the market's sums are gone".into()))?;
    let int = |column| row.int(column);
    let jobs = JobCounts {
        held: int(2)?,
        dispatched: int(3)?,
        done: int(4)?,
        failed: int(5)?,
        cancelled: int(6)?,
        expired: int(7)?,
    };
    Ok(MarketTotals {
        held_credits: int(0)?,
        volume: int(1)?,
        jobs,
    })
}
