//! Closes a job: payment or refund, reputation, record and notifications in one transaction (R-62,
//! R-63, failures 21–23).

use super::status;
use crate::context::HubContext;
use crate::delivery::outbox::{self, OutboxPost, PostPurpose};
use crate::identity;
use crate::limits;
use crate::market::ledger::{self, JobRef};
use crate::market::reputation;
use crate::store::jobs::{self, JobEndRecord, JobRecord};
use crate::store::outbox::RetryClass;
use crate::store::{
    AgentId, EntryKind, JobEvent, JobId, JobState, NewLogEntry, SubjectId, WriteTxn,
};
use crate::{Principal, Result};
use chorus_wire::credits::Credits;
use chorus_wire::identity::AgentName;
use chorus_wire::market::job::{self as wire, JobOutcome, JobResult};
use chorus_wire::{Error, ErrorCode};
use futures_util::future::join_all;
use std::sync::Arc;

/// How a job is to end.
#[derive(Clone, Debug)]
pub(in crate::market) enum JobEnding {
    Done {
        /// The output as JSON.
        output: String,
        /// What the worker charges, at most the offered cost; without it, the offered cost.
        cost: Option<Credits>,
        took_ms: Option<i64>,
    },
    Failed {
        code: String,
        message: String,
        took_ms: Option<i64>,
        /// Whether the failure counts against the worker's reputation.
        affects_reputation: bool,
    },
    Cancelled,
    Expired,
}

impl JobEnding {
    const fn job_event(&self) -> JobEvent {
        match self {
            JobEnding::Done { .. } => JobEvent::Succeed,
            JobEnding::Failed { .. } => JobEvent::Fail,
            JobEnding::Cancelled => JobEvent::Cancel,
            JobEnding::Expired => JobEvent::Expire,
        }
    }
}

/// The ending that a worker's report stands for.
pub(super) fn ending_from_result(result: JobResult) -> JobEnding {
    let took_ms = result.execution_time_ms.map(|ms| ms as i64);
    match result.outcome {
        JobOutcome::Success {
            output_data,
            execution_cost,
        } => JobEnding::Done {
            output: output_data.to_string(),
            cost: execution_cost,
            took_ms,
        },
        JobOutcome::Failure {
            error_code,
            error_message,
        } => JobEnding::Failed {
            code: error_code.unwrap_or_else(|| ErrorCode::ExecutionError.as_str().into()),
            message: error_message,
            took_ms,
            affects_reputation: true,
        },
    }
}

/// `POST /jobs/{id}/result`: stores the worker's result, once.
pub async fn report_result(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
    result: JobResult,
) -> Result<wire::Job> {
    let agent_id = principal.require_agent()?.id;
    let other_job = result
        .job_id
        .as_deref()
        .is_some_and(|named_job| named_job != job_id);
    let other_agent = match &result.agent_id {
        Some(named_agent) => {
            identity::find_agent(hub.identity(), &AgentName::parse("agent_id", named_agent)?)
                .await?
                .is_none_or(|found| found.id != agent_id)
        }
        None => false,
    };
    let check_allowed = move |job: &JobRecord| {
        if job.worker != agent_id {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "only the agent that does the job reports its result",
            ));
        }
        if other_job {
            return Err(Error::validation("job_id is not the one in the path"));
        }
        if other_agent {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "agent_id must be the agent whose key this is",
            ));
        }
        Ok(())
    };
    finish_own_job(
        hub,
        agent_id,
        job_id,
        ending_from_result(result),
        check_allowed,
    )
    .await
}

/// `POST /jobs/{id}/cancel`: allowed to the requester, before a result. No reputation changes.
pub async fn cancel_job(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
) -> Result<wire::Job> {
    let agent_id = principal.require_agent()?.id;
    let check_allowed = move |job: &JobRecord| match job.requester == agent_id {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Forbidden,
            "only the agent that asked for the job cancels it",
        )),
    };
    finish_own_job(hub, agent_id, job_id, JobEnding::Cancelled, check_allowed).await
}

/// Closes a job of which `agent_id` is the requester or the worker, if `check_allowed` permits it.
/// The look-up is in the closing transaction, because an earlier one would have to be repeated
/// there.
async fn finish_own_job(
    hub: &HubContext,
    agent_id: AgentId,
    job_id: &str,
    ending: JobEnding,
    check_allowed: impl Fn(&JobRecord) -> Result<()> + Send + 'static,
) -> Result<wire::Job> {
    let job_id = job_id.to_owned();
    let ended = hub.store().write(async move |txn| {
        let job = jobs::find_job_by_job_id(&txn.tx, &job_id)
            .await?
            .filter(|job| job.worker == agent_id || job.requester == agent_id);
        let job = job.ok_or(ErrorCode::NotFound)?;
        check_allowed(&job)?;
        close_or_expire(txn, job, ending.clone()).await
    });
    job_reply(hub, ended.await?)
}

/// Closes the job with this ending; `ERR_JOB_CLOSED` when it is closed already or its deadline
/// has passed.
pub(super) async fn finish_job(
    hub: &HubContext,
    id: JobId,
    ending: JobEnding,
) -> Result<wire::Job> {
    let ended = hub.store().write(async move |txn| {
        let job = jobs::find_job(&txn.tx, id)
            .await?
            .ok_or(ErrorCode::NotFound)?;
        close_or_expire(txn, job, ending.clone()).await
    });
    job_reply(hub, ended.await?)
}

/// Closes the job. Returns it, and whether it has the requested ending; otherwise it has expired.
async fn close_or_expire(
    txn: &mut WriteTxn<'_>,
    job: JobRecord,
    ending: JobEnding,
) -> Result<(JobRecord, bool)> {
    if job.state.next_state(ending.job_event()).is_none() {
        return Err(ErrorCode::JobClosed.into());
    }
    // Past its deadline a job expires, whichever request comes first, so that the result does not
    // depend on when the hub looks for overdue jobs.
    let is_late = txn.now() >= job.deadline && !matches!(ending, JobEnding::Expired);
    let ending = if is_late { JobEnding::Expired } else { ending };
    Ok((close_job(txn, job, ending).await?, !is_late))
}

fn job_reply(hub: &HubContext, (job, as_requested): (JobRecord, bool)) -> Result<wire::Job> {
    if job.callback_url.is_some() {
        hub.wake_outbox();
    }
    if as_requested {
        Ok(status::describe_job(&job, false))
    } else {
        Err(Error::new(ErrorCode::JobClosed, "the deadline has passed"))
    }
}

/// Closes jobs that are past their deadline.
pub(super) async fn expire_overdue_jobs(hub: &HubContext) -> Result<()> {
    loop {
        let now = hub.clock().now();
        let overdue_ids = hub
            .store()
            .read(async move |tx| Ok(jobs::list_overdue_jobs(tx, now, limits::JOBS_BATCH).await?))
            .await?;
        if overdue_ids.is_empty() {
            return Ok(());
        }
        // Concurrently, so that they share one commit. Thousands of jobs that expire at once would
        // otherwise delay all other background work.
        for ended in join_all(
            overdue_ids
                .into_iter()
                .map(|id| finish_job(hub, id, JobEnding::Expired)),
        )
        .await
        {
            match ended {
                Ok(_) => {}
                Err(error) if error.code == ErrorCode::JobClosed => {}
                Err(error) => return Err(error),
            }
        }
    }
}

async fn close_job(txn: &mut WriteTxn<'_>, job: JobRecord, ending: JobEnding) -> Result<JobRecord> {
    let next_state = job
        .state
        .next_state(ending.job_event())
        .ok_or(ErrorCode::JobClosed)?;
    let verdict = reputation::verdict_of_ending(&job, &ending);
    let end = settle_credits(txn, &job, ending).await?;
    if let Some(success) = verdict {
        reputation::apply_job_result(txn, job.id, job.worker, job.requester, success).await?;
    }
    jobs::close_job(&txn.tx, job.id, next_state, &end).await?;
    *txn.counter_deltas.market.jobs.count_mut(job.state) -= 1;
    *txn.counter_deltas.market.jobs.count_mut(next_state) += 1;
    let job = JobRecord {
        state: next_state,
        end: Some(end),
        ..job
    };
    announce_end(txn, &job).await?;
    Ok(job)
}

/// Pays the worker or releases the hold. Returns the record of the end.
async fn settle_credits(
    txn: &mut WriteTxn<'_>,
    job: &JobRecord,
    ending: JobEnding,
) -> Result<JobEndRecord> {
    let job_ref = JobRef {
        id: job.id,
        job_id: &job.job_id,
    };
    let end = JobEndRecord {
        at: txn.now(),
        paid: Some(Credits::ZERO),
        ..JobEndRecord::default()
    };
    Ok(match ending {
        JobEnding::Done {
            output,
            cost,
            took_ms,
        } => {
            let paid = cost.unwrap_or(job.cost);
            // The price at the time of the request, which is within the budget: a larger budget is no larger price.
            if paid > job.cost {
                let message = format!("execution_cost is above the agreed price of {}", job.cost);
                return Err(Error::new(ErrorCode::BudgetInsufficient, message));
            }
            ledger::pay_from_hold(txn, job_ref, job.payer, job.payee, paid).await?;
            JobEndRecord {
                paid: Some(paid),
                took_ms,
                output: Some(output),
                ..end
            }
        }
        JobEnding::Failed {
            code,
            message,
            took_ms,
            affects_reputation: _,
        } => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            JobEndRecord {
                took_ms,
                error_code: Some(code),
                error: Some(message),
                ..end
            }
        }
        JobEnding::Cancelled => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            let error = Some("the job was cancelled".into());
            JobEndRecord { error, ..end }
        }
        JobEnding::Expired => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            let error = Some("no result came before the deadline".into());
            JobEndRecord { error, ..end }
        }
    })
}

/// Announces the end to the requester, on its inbox and at its callback URL, and to the worker when
/// the job was cancelled or has expired.
async fn announce_end(txn: &mut WriteTxn<'_>, job: &JobRecord) -> Result<()> {
    let body: Arc<str> = serde_json::to_string(&status::describe_job(job, false))
        .map_err(Error::internal)?
        .into();
    let job_entry = |subject: SubjectId, subject_name| NewLogEntry {
        subject,
        subject_name,
        kind: EntryKind::JobResult,
        actor: job.worker.into(),
        actor_name: job.worker_name.clone(),
        body: body.clone(),
        fallback: None,
    };
    if let Some(url) = &job.callback_url {
        outbox::enqueue_post(
            txn,
            PostPurpose::JobCallback,
            OutboxPost {
                retry_class: RetryClass::New,
                lane: &job.job_id,
                owner: Some(job.payer),
                url,
                body: &body,
            },
        )
        .await?;
    }
    let taken_from_worker = match job.state {
        JobState::Cancelled | JobState::Expired => job.worker != job.requester,
        JobState::Requested
        | JobState::Held
        | JobState::Dispatched
        | JobState::Done
        | JobState::Failed => false,
    };
    if taken_from_worker {
        txn.append_entry(job_entry(job.worker.into(), job.worker_name.clone()));
    }
    txn.append_entry(job_entry(job.requester.into(), job.requester_name.clone()));
    Ok(())
}
