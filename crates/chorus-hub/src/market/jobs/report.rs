//! What a worker reports: a result, a decline, progress or a question, whichever way it comes.

use super::finish::{self, JobEnding};
use super::next_worker::{self, HandBack};
use super::status;
use super::timeline::{self, find_own_job};
use crate::context::HubContext;
use crate::identity;
use crate::market::schema_checks;
use crate::store::jobs::JobRecord;
use crate::store::{AgentId, JobEvent, WriteTxn};
use crate::{Principal, Result};
use chorus_wire::identity::AgentName;
use chorus_wire::market::job::{self as wire, JobOutcome, JobResult, JobUpdateKind};
use chorus_wire::{Error, ErrorCode};

/// The codes of the jobs document by which a worker declines a job.
const DECLINE_CODES: [ErrorCode; 3] = [
    ErrorCode::SkillMismatch,
    ErrorCode::BudgetInsufficient,
    ErrorCode::AgentOffline,
];

pub(super) fn is_decline(code: &str) -> bool {
    DECLINE_CODES.iter().any(|decline| decline.as_str() == code)
}

/// `POST /jobs/{id}/result`: applies the worker's report. The first result stands.
pub async fn report_result(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
    result: JobResult,
) -> Result<wire::Job> {
    let worker = principal.require_agent()?.id;
    apply_report(hub, job_id, worker, result).await
}

/// What the transaction of a report finds.
enum ReportStep {
    /// The job after the report, and whether the report counts; otherwise the deadline has passed.
    Applied(Box<JobRecord>, bool),
    /// The output has to be checked first, outside of the transaction.
    CheckOutput(String),
    Declined(Box<JobRecord>),
}

/// Applies a report of `worker`.
pub(super) async fn apply_report(
    hub: &HubContext,
    job_id: &str,
    worker: AgentId,
    result: JobResult,
) -> Result<wire::Job> {
    let names_other_job = result
        .job_id
        .as_deref()
        .is_some_and(|named| named != job_id);
    let names_other_agent = match &result.agent_id {
        Some(named_agent) => {
            identity::find_agent(hub.identity(), &AgentName::parse("agent_id", named_agent)?)
                .await?
                .is_none_or(|found| found.id != worker)
        }
        None => false,
    };
    let mut is_checked = false;
    loop {
        let wanted = job_id.to_owned();
        let report = result.clone();
        let step = hub.store().write(async move |txn| {
            let job = find_own_job(txn, worker, &wanted).await?;
            if job.worker != worker {
                return Err(Error::new(
                    ErrorCode::Forbidden,
                    "only the agent that does the job reports its result",
                ));
            }
            if names_other_job {
                let message = "job_id is another one than that of the job";
                return Err(Error {
                    field: Some("job_id".into()),
                    ..Error::new(ErrorCode::JobConflict, message)
                });
            }
            if names_other_agent {
                return Err(Error {
                    field: Some("agent_id".into()),
                    ..Error::new(
                        ErrorCode::Forbidden,
                        "agent_id must be the agent whose key this is",
                    )
                });
            }
            apply_in_transaction(txn, job, report.clone(), is_checked).await
        });
        match step.await? {
            ReportStep::Applied(job, counts) => return finish::job_reply(hub, (*job, counts)),
            ReportStep::CheckOutput(schema) => {
                if let JobOutcome::Success { output_data, .. } = &result.outcome {
                    schema_checks::check_output(&schema, output_data).await?;
                }
                is_checked = true;
            }
            ReportStep::Declined(job) => {
                let back = HandBack::from_outcome(JobUpdateKind::Declined, &result.outcome);
                let job = next_worker::hand_back(hub, *job, back).await?;
                return Ok(status::describe_job(&job, false));
            }
        }
    }
}

async fn apply_in_transaction(
    txn: &mut WriteTxn<'_>,
    job: JobRecord,
    result: JobResult,
    is_checked: bool,
) -> Result<ReportStep> {
    // Reported again: the worker has not heard the answer.
    let has_result = job.end.is_some() || job.delivery.is_some();
    if has_result && finish::has_same_result(&job, &finish::ending_from_result(result.clone())) {
        return Ok(ReportStep::Applied(Box::new(job), true));
    }
    // A delivery is a result: a second one does not replace it.
    if job.state.next_state(JobEvent::Deliver).is_none() {
        return Err(ErrorCode::JobClosed.into());
    }
    let is_late = job.is_overdue(txn.expiry_clock());
    let ending = match result.outcome {
        JobOutcome::Pending(note) if !is_late => {
            let job = timeline::apply_worker_note(txn, job, note.as_ref()).await?;
            return Ok(ReportStep::Applied(Box::new(job), true));
        }
        JobOutcome::Pending(_) => JobEnding::Expired,
        JobOutcome::Failure {
            error_code: Some(code),
            ..
        } if is_decline(&code) && !is_late => return Ok(ReportStep::Declined(Box::new(job))),
        JobOutcome::Failure { .. } => finish::ending_from_result(result),
        JobOutcome::Success {
            ref output_data, ..
        } => {
            if let Some(schema) = &job.terms.output_schema
                && !is_checked
                && !is_late
            {
                match schema_checks::check_small_output(schema, output_data) {
                    Some(verdict) => verdict?,
                    None => return Ok(ReportStep::CheckOutput(schema.clone())),
                }
            }
            finish::ending_from_result(result)
        }
    };
    let (job, counts) = finish::close_or_expire(txn, job, ending).await?;
    Ok(ReportStep::Applied(Box::new(job), counts && !is_late))
}
