//! Meters of the store: how long a commit takes, and which jobs it ended. They are counted once a commit has succeeded, so
//! what was rolled back is not counted.

use super::counters::CounterDeltas;
use super::{DbConnection, DbError};
use tokio::time::Instant;

/// Commits the transaction of a write group.
pub(super) async fn commit_group(
    tx: &DbConnection<'_>,
    deltas: &CounterDeltas,
) -> Result<(), DbError> {
    let started_at = Instant::now();
    tx.control_transaction("commit").await?;
    metrics::histogram!("chorus_commit_seconds").record(started_at.elapsed());
    let jobs = &deltas.market.jobs;
    if jobs.done > 0 {
        metrics::counter!("chorus_jobs_total", "end" => "done").increment(jobs.done.unsigned_abs());
    }
    if jobs.failed > 0 {
        metrics::counter!("chorus_jobs_total", "end" => "failed")
            .increment(jobs.failed.unsigned_abs());
    }
    if jobs.cancelled > 0 {
        metrics::counter!("chorus_jobs_total", "end" => "cancelled")
            .increment(jobs.cancelled.unsigned_abs());
    }
    if jobs.expired > 0 {
        metrics::counter!("chorus_jobs_total", "end" => "expired")
            .increment(jobs.expired.unsigned_abs());
    }
    Ok(())
}
