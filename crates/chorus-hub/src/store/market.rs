//! The market's sums, written once per group like the counters.

use super::{DbError, Param, Tx};
use crate::market::jobs::State;

/// What a group adds to the sums of the market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Hundredths held for jobs.
    pub held: i64,
    /// Hundredths paid from one owner to another.
    pub volume: i64,
    pub jobs: Jobs,
}

/// Jobs by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jobs {
    pub held: i64,
    pub dispatched: i64,
    pub done: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub expired: i64,
}

impl Jobs {
    pub fn of(&mut self, state: State) -> &mut i64 {
        match state {
            // A job that was only asked for has no row and is counted nowhere.
            State::Requested | State::Held => &mut self.held,
            State::Dispatched => &mut self.dispatched,
            State::Done => &mut self.done,
            State::Failed => &mut self.failed,
            State::Cancelled => &mut self.cancelled,
            State::Expired => &mut self.expired,
        }
    }
}

impl Sums {
    pub(super) async fn store(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        const SQL: &str =
            "update market set held = held + $1, volume = volume + $2, held_jobs = held_jobs + $3,
                           dispatched = dispatched + $4, done = done + $5, failed = failed + $6,
                           cancelled = cancelled + $7, expired = expired + $8 where id = 1";
        if *self == Self::default() {
            return Ok(());
        }
        let jobs = &self.jobs;
        let sums = [
            self.held,
            self.volume,
            jobs.held,
            jobs.dispatched,
            jobs.done,
            jobs.failed,
            jobs.cancelled,
            jobs.expired,
        ];
        tx.execute(SQL, &sums.map(Param::Int)).await.map(drop)
    }
}

/// The sums as they stand: `Sums` from nothing.
pub(crate) async fn read(tx: &Tx<'_>) -> Result<Sums, DbError> {
    const SQL: &str = "select held, volume, held_jobs, dispatched, done, failed, cancelled, expired from market where id = 1";
    let row = tx
        .one(SQL, &[])
        .await?
        .ok_or_else(|| DbError::Other("the market's sums are gone".into()))?;
    let int = |column| row.int(column);
    let jobs = Jobs {
        held: int(2)?,
        dispatched: int(3)?,
        done: int(4)?,
        failed: int(5)?,
        cancelled: int(6)?,
        expired: int(7)?,
    };
    Ok(Sums {
        held: int(0)?,
        volume: int(1)?,
        jobs,
    })
}
