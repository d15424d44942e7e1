//! Jobs: requested, held, dispatched, and closed exactly once.

mod callback;
mod dispatch;
mod finish;
mod request;
mod status;

pub(crate) use callback::JobCallbackHandler;
pub(super) use finish::JobEnding;
pub use finish::{cancel_job, report_result};
pub use request::request_job;
pub use status::{get_job, list_jobs};

use crate::Result;
use crate::context::HubContext;
use crate::store::{JobEvent, JobId, JobState, WriteTxn, jobs};

/// Closes jobs that are past their deadline, and dispatches jobs whose dispatch is due again.
pub(crate) async fn run_due_jobs(hub: &HubContext) -> Result<()> {
    finish::expire_overdue_jobs(hub).await?;
    dispatch::retry_waiting_dispatches(hub).await
}

/// Moves a job to its next state without closing it; false when it is no longer in the state
/// `from`.
async fn advance_job(
    txn: &mut WriteTxn<'_>,
    id: JobId,
    from: JobState,
    event: JobEvent,
) -> Result<bool> {
    let Some(to) = from.next_state(event) else {
        return Ok(false);
    };
    let moved = jobs::change_job_state(&txn.tx, id, from, to).await?;
    if moved {
        *txn.counter_deltas.market.jobs.count_mut(from) -= 1;
        *txn.counter_deltas.market.jobs.count_mut(to) += 1;
    }
    Ok(moved)
}
