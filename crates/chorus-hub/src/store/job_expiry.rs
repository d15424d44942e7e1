//! Which jobs are past their deadline, and which claims and dispatches past their lease, also after the clock leaped (D-123).

use super::jobs::JobRecord;
use super::{DbConnection, DbError, JobId, JobState, SqlParam};
use crate::clock_watch::ExpiryClock;
use crate::limits::OUTBOX_LEASE;
use chorus_wire::limits;
use chorus_wire::time::UnixMicros;
use std::time::Duration;

impl JobRecord {
    /// Whether the hub closes the job by itself now.
    pub fn is_overdue(&self, clock: ExpiryClock) -> bool {
        clock.is_over(self.period_began_at(), self.closes_at)
    }

    /// The time until the hub closes the job by itself.
    pub fn time_left(&self, clock: ExpiryClock) -> Duration {
        let now = clock.now_since(self.period_began_at());
        let micros_left = self.closes_at.0.saturating_sub(now.0).max(0);
        Duration::from_micros(micros_left.unsigned_abs())
    }

    /// Whether the worker that claimed the job has not reported within its lease.
    pub fn is_lease_over(&self, clock: ExpiryClock) -> bool {
        self.lease_until
            .is_some_and(|until| clock.is_over(until.saturating_sub(limits::JOB_LEASE), until))
    }

    /// When the period that ends with `closes_at` began: with the request, or with the delivery that waits for approval.
    fn period_began_at(&self) -> UnixMicros {
        match (self.state, self.terms.approve_ms) {
            (JobState::Delivered, Some(approve_ms)) => {
                let window = Duration::from_millis(approve_ms.unsigned_abs());
                self.closes_at.saturating_sub(window)
            }
            (
                JobState::Requested
                | JobState::Open
                | JobState::Held
                | JobState::Dispatched
                | JobState::InputRequired
                | JobState::Delivered
                | JobState::Done
                | JobState::Failed
                | JobState::Cancelled
                | JobState::Expired,
                _,
            ) => self.requested_at,
        }
    }
}

/// The ids of open jobs whose deadline has passed.
pub(crate) async fn list_overdue_jobs(
    tx: &DbConnection<'_>,
    clock: ExpiryClock,
    limit: usize,
) -> Result<Vec<JobId>, DbError> {
    // Without a leap the second and the third parameter exclude nothing.
    const SQL: &str = "
        select id from jobs where ended_at is null and deadline <= $1
        and (deadline <= $2
             or case when state = 'delivered' then deadline - approve_ms * 1000 else requested_at end >= $3)
        order by deadline limit $4";
    let params = [
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().0),
        SqlParam::Int(limit as i64),
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// The ids of claimed jobs whose workers have not reported in time.
pub(crate) async fn list_lapsed_jobs(
    tx: &DbConnection<'_>,
    clock: ExpiryClock,
    limit: usize,
) -> Result<Vec<JobId>, DbError> {
    const SQL: &str = "
        select id from jobs where lease_until is not null and lease_until <= $1
        and (lease_until <= $2 or lease_until >= $3) order by lease_until limit $4";
    let params = [
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().saturating_add(limits::JOB_LEASE).0),
        SqlParam::Int(limit as i64),
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// The ids of jobs whose dispatch lease is over: the hub that held it stopped or was too slow. By the wall clock alone, a leap would
/// end the lease of a post that is under way.
pub(crate) async fn list_undispatched_jobs(
    tx: &DbConnection<'_>,
    clock: ExpiryClock,
    limit: usize,
) -> Result<Vec<JobId>, DbError> {
    const SQL: &str = "
        select id from jobs where state = 'held' and attempt_at <= $1
        and (attempt_at <= $2 or attempt_at >= $3) order by attempt_at limit $4";
    let params = [
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().saturating_add(OUTBOX_LEASE).0),
        SqlParam::Int(limit as i64),
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// Leases the dispatch of a job anew; false when its lease is not over.
pub(crate) async fn lease_dispatch(
    tx: &DbConnection<'_>,
    id: JobId,
    clock: ExpiryClock,
) -> Result<bool, DbError> {
    const SQL: &str = "
        update jobs set attempt_at = $5 where id = $1 and state = 'held' and attempt_at <= $2
        and (attempt_at <= $3 or attempt_at >= $4)";
    let params = [
        SqlParam::id(id),
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().saturating_add(OUTBOX_LEASE).0),
        SqlParam::Int(clock.now().saturating_add(OUTBOX_LEASE).0),
    ];
    Ok(tx.execute(SQL, &params).await? == 1)
}
