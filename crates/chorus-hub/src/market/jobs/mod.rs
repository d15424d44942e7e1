//! Jobs: requested, held, dispatched or claimed, and closed exactly once.

mod board;
mod callback;
mod callback_secret;
mod dispatch;
mod finish;
mod next_worker;
mod report;
mod request;
mod status;
mod timeline;

pub use board::{approve_job, claim_job, list_board, reject_job};
pub(crate) use callback::JobCallbackHandler;
pub use callback_secret::JobCallback;
pub(super) use dispatch::jobs_url;
pub(super) use finish::JobEnding;
pub use finish::cancel_job;
pub use report::report_result;
pub use request::request_job;
pub use status::{get_job, list_jobs};
pub use timeline::answer_question;

use crate::Result;
use crate::context::HubContext;
use crate::store::jobs::JobRecord;
use crate::store::{JobEvent, JobId, JobState, WriteTxn, jobs};
use chorus_wire::ErrorCode;

/// Closes jobs that are past their deadline, returns claimed jobs whose lease has lapsed to the board, and dispatches jobs whose
/// dispatch is due again.
pub(crate) async fn run_due_jobs(hub: &HubContext) -> Result<()> {
    finish::close_overdue_jobs(hub).await?;
    board::return_lapsed_jobs(hub).await?;
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

/// Moves a job that was read in this transaction; `ERR_JOB_CLOSED` when the event is not allowed in its state.
async fn move_job(txn: &mut WriteTxn<'_>, job: &mut JobRecord, event: JobEvent) -> Result<()> {
    let next_state = job.state.next_state(event).ok_or(ErrorCode::JobClosed)?;
    if !advance_job(txn, job.id, job.state, event).await? {
        return Err(ErrorCode::JobClosed.into());
    }
    job.state = next_state;
    Ok(())
}
