//! Totals of the market: credits held, volume and jobs by state, written once per write group like the counters.

use super::{ColumnReader, DbConnection, DbError, FromRow, JobState, SqlParam};

/// What a write group adds to the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarketTotals {
    /// Held for jobs, in hundredths of a credit.
    pub held_credits: i64,
    /// Paid from one owner to another, in hundredths of a credit.
    pub volume: i64,
    pub jobs: JobCounts,
}

/// The number of jobs in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobCounts {
    pub open: i64,
    pub input_required: i64,
    pub delivered: i64,
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
            // No job is stored in the state `Requested`, so it needs no counter.
            JobState::Requested | JobState::Held => &mut self.held,
            JobState::Open => &mut self.open,
            JobState::Dispatched => &mut self.dispatched,
            JobState::InputRequired => &mut self.input_required,
            JobState::Delivered => &mut self.delivered,
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
                           cancelled = cancelled + $7, expired = expired + $8, open_jobs = open_jobs + $9,
                           input_required = input_required + $10, delivered = delivered + $11 where id = 1";
        if *self == Self::default() {
            return Ok(());
        }
        let jobs = &self.jobs;
        let deltas = [
            self.held_credits,
            self.volume,
            jobs.held,
            jobs.dispatched,
            jobs.done,
            jobs.failed,
            jobs.cancelled,
            jobs.expired,
            jobs.open,
            jobs.input_required,
            jobs.delivered,
        ];
        tx.execute(SQL, &deltas.map(SqlParam::Int)).await.map(drop)
    }
}

const SELECT_TOTALS: &str =
    "select held, volume, open_jobs, input_required, delivered, held_jobs, dispatched, done, failed, cancelled, expired
     from market where id = 1";

/// Reads the columns of [`SELECT_TOTALS`].
impl FromRow for MarketTotals {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(MarketTotals {
            held_credits: columns.int()?,
            volume: columns.int()?,
            jobs: JobCounts {
                open: columns.int()?,
                input_required: columns.int()?,
                delivered: columns.int()?,
                held: columns.int()?,
                dispatched: columns.int()?,
                done: columns.int()?,
                failed: columns.int()?,
                cancelled: columns.int()?,
                expired: columns.int()?,
            },
        })
    }
}

/// The current totals, as deltas from zero.
pub(crate) async fn read_totals(tx: &DbConnection<'_>) -> Result<MarketTotals, DbError> {
    let row = tx
        .query_first(SELECT_TOTALS, &[])
        .await?
        .ok_or_else(|| DbError::Other("the market's sums are gone".into()))?;
    MarketTotals::from_row(row)
}
