//! Closes a job: payment or refund, reputation, record and notifications in one transaction (R-62,
//! R-63, failures 21–23).

use super::status;
use super::timeline::{self, NotifiedParty, UpdateDraft};
use crate::context::HubContext;
use crate::delivery::outbox::{self, OutboxPost, PostPurpose};
use crate::limits;
use crate::market::ledger::{self, JobRef};
use crate::market::reputation;
use crate::store::jobs::{self, JobEndRecord, JobRecord};
use crate::store::outbox::RetryClass;
use crate::store::{
    AgentId, EntryKind, JobEvent, JobId, JobState, NewLogEntry, SubjectId, WriteTxn, job_board,
    job_expiry,
};
use crate::{Principal, Result};
use chorus_wire::credits::Credits;
use chorus_wire::market::job::{self as wire, JobOutcome, JobResult, JobUpdateKind};
use chorus_wire::{Error, ErrorCode};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

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
    /// The delivery is paid: its requester approved it, or let the time pass.
    Approved,
    Rejected {
        reason: Option<String>,
    },
}

/// The code of a job whose delivery was rejected.
const REJECTED_CODE: &str = "REJECTED";
/// The code of a job that no result came for in time.
const DEADLINE_CODE: &str = "DEADLINE";
/// The code of a job that its requester cancelled.
const CANCELLED_CODE: &str = "CANCELLED";

impl JobEnding {
    const fn job_event(&self) -> JobEvent {
        match self {
            JobEnding::Done { .. } | JobEnding::Approved => JobEvent::Succeed,
            JobEnding::Failed { .. } | JobEnding::Rejected { .. } => JobEvent::Fail,
            JobEnding::Cancelled => JobEvent::Cancel,
            JobEnding::Expired => JobEvent::Expire,
        }
    }

    /// Only a delivery is approved or rejected, and it has no other ending.
    const fn is_allowed_in(&self, state: JobState) -> bool {
        let judges_delivery = matches!(self, JobEnding::Approved | JobEnding::Rejected { .. });
        let is_delivered = matches!(state, JobState::Delivered);
        judges_delivery == is_delivered && state.next_state(self.job_event()).is_some()
    }

    /// How a job ends that is past its deadline.
    const fn when_overdue(state: JobState) -> Self {
        match state {
            JobState::Delivered => JobEnding::Approved,
            JobState::Requested
            | JobState::Open
            | JobState::Held
            | JobState::Dispatched
            | JobState::InputRequired
            | JobState::Done
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Expired => JobEnding::Expired,
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
        // The report of a job that is not finished ends nothing; past its deadline the job expires.
        JobOutcome::Pending(_) => JobEnding::Expired,
    }
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
pub(super) async fn finish_own_job(
    hub: &HubContext,
    agent_id: AgentId,
    job_id: &str,
    ending: JobEnding,
    check_allowed: impl Fn(&JobRecord) -> Result<()> + Send + 'static,
) -> Result<wire::Job> {
    let job_id = job_id.to_owned();
    let ended = hub.store().write_repeatable(async move |txn| {
        let job = timeline::find_own_job(txn, agent_id, &job_id).await?;
        check_allowed(&job)?;
        let (job, as_requested) = close_or_expire(txn, job, ending.clone()).await?;
        let has_callback = job.callback_url.is_some();
        Ok((
            status::describe_job(&job, false),
            has_callback,
            as_requested,
        ))
    });
    let (job, has_callback, as_requested) = ended.await?;
    reply_with(hub, job, has_callback, as_requested)
}

/// Closes the job, or delivers its result where the requester approves it first. Returns the job, and whether it has the requested
/// ending; otherwise it was overdue.
pub(super) async fn close_or_expire(
    txn: &mut WriteTxn<'_>,
    job: JobRecord,
    ending: JobEnding,
) -> Result<(JobRecord, bool)> {
    // Past its deadline a job ends by itself, whichever request comes first, so that the result does not
    // depend on when the hub looks for overdue jobs.
    let is_overdue = job.is_overdue(txn.expiry_clock());
    let overdue_ending = JobEnding::when_overdue(job.state);
    let is_late = is_overdue && ending.job_event() != overdue_ending.job_event();
    if has_same_result(&job, &ending) {
        return Ok((job, true));
    }
    if !ending.is_allowed_in(job.state) {
        return Err(ErrorCode::JobClosed.into());
    }
    if is_overdue {
        return Ok((close_job(txn, job, overdue_ending).await?, !is_late));
    }
    match (ending, job.terms.approve_ms) {
        (
            JobEnding::Done {
                output,
                cost,
                took_ms,
            },
            Some(approve_ms),
        ) => {
            let delivery = JobEndRecord {
                paid: Some(agreed_price(&job, cost)?),
                took_ms,
                output: Some(output),
                ..JobEndRecord::default()
            };
            let job = deliver_result(txn, job, delivery, approve_ms).await?;
            Ok((job, true))
        }
        (ending, _) => Ok((close_job(txn, job, ending).await?, true)),
    }
}

/// Stores a result that waits for approval.
async fn deliver_result(
    txn: &mut WriteTxn<'_>,
    mut job: JobRecord,
    delivery: JobEndRecord,
    approve_ms: i64,
) -> Result<JobRecord> {
    let window = Duration::from_millis(approve_ms.unsigned_abs());
    super::move_job(txn, &mut job, JobEvent::Deliver).await?;
    job.closes_at = txn.now().saturating_add(window);
    job.lease_until = None;
    job_board::store_delivery(&txn.tx, job.id, &delivery, job.closes_at).await?;
    job.delivery = Some(delivery);
    let draft = UpdateDraft::by_worker(&job, JobUpdateKind::Delivered, None);
    timeline::record_update(txn, &job, draft, &[NotifiedParty::Requester]).await?;
    Ok(job)
}

/// The cost that the worker reports, at most the price when it got the job: a larger budget is no larger price.
fn agreed_price(job: &JobRecord, cost: Option<Credits>) -> Result<Credits> {
    let paid = cost.unwrap_or(job.cost);
    if paid > job.cost {
        let message = format!("execution_cost is above the agreed price of {}", job.cost);
        return Err(Error {
            field: Some("execution_cost".into()),
            ..Error::new(ErrorCode::BudgetInsufficient, message)
        });
    }
    Ok(paid)
}

/// Whether the job has ended with exactly this result: the worker reports it again, because it has not heard the answer.
pub(super) fn has_same_result(job: &JobRecord, ending: &JobEnding) -> bool {
    let Some(end) = job.end.as_ref().or(job.delivery.as_ref()) else {
        return false;
    };
    match ending {
        JobEnding::Done {
            output,
            cost,
            took_ms,
        } => {
            let is_same_output = end.output.as_deref().is_some_and(|stored| {
                let parse = serde_json::from_str::<serde_json::Value>;
                stored == output
                    || matches!((parse(stored), parse(output)), (Ok(a), Ok(b)) if a == b)
            });
            matches!(job.state, JobState::Done | JobState::Delivered)
                && is_same_output
                && end.paid == Some(cost.unwrap_or(job.cost))
                && end.took_ms == *took_ms
        }
        JobEnding::Failed {
            code,
            message,
            took_ms,
            affects_reputation: _,
        } => {
            job.state == JobState::Failed
                && end.error_code.as_ref() == Some(code)
                && end.error.as_ref() == Some(message)
                && end.took_ms == *took_ms
        }
        JobEnding::Cancelled
        | JobEnding::Expired
        | JobEnding::Approved
        | JobEnding::Rejected { .. } => false,
    }
}

pub(super) fn job_reply(
    hub: &HubContext,
    (job, as_requested): (JobRecord, bool),
) -> Result<wire::Job> {
    let has_callback = job.callback_url.is_some();
    reply_with(
        hub,
        status::describe_job(&job, false),
        has_callback,
        as_requested,
    )
}

fn reply_with(
    hub: &HubContext,
    job: wire::Job,
    has_callback: bool,
    as_requested: bool,
) -> Result<wire::Job> {
    if has_callback {
        hub.wake_outbox();
    }
    if as_requested {
        Ok(job)
    } else {
        Err(Error::new(ErrorCode::JobClosed, "the deadline has passed"))
    }
}

/// Closes jobs that are past their deadline: deliveries are paid, the others expire.
pub(super) async fn close_overdue_jobs(hub: &HubContext) -> Result<()> {
    loop {
        let clock = hub.expiry_clock();
        let overdue_ids = hub
            .store()
            .read(async move |tx| {
                Ok(job_expiry::list_overdue_jobs(tx, clock, limits::JOBS_BATCH).await?)
            })
            .await?;
        if overdue_ids.is_empty() {
            return Ok(());
        }
        // Concurrently, so that they share one commit. Thousands of jobs that expire at once would
        // otherwise delay all other background work.
        for ended in join_all(overdue_ids.into_iter().map(|id| close_overdue_job(hub, id))).await {
            match ended {
                Ok(_) => {}
                Err(error) if error.code == ErrorCode::JobClosed => {}
                Err(error) => return Err(error),
            }
        }
    }
}

async fn close_overdue_job(hub: &HubContext, id: JobId) -> Result<wire::Job> {
    let ended = hub.store().write(async move |txn| {
        let job = jobs::find_job(&txn.tx, id)
            .await?
            .ok_or(ErrorCode::NotFound)?;
        let ending = JobEnding::when_overdue(job.state);
        close_or_expire(txn, job, ending).await
    });
    job_reply(hub, ended.await?)
}

async fn close_job(txn: &mut WriteTxn<'_>, job: JobRecord, ending: JobEnding) -> Result<JobRecord> {
    let next_state = job
        .state
        .next_state(ending.job_event())
        .ok_or(ErrorCode::JobClosed)?;
    if let JobEnding::Rejected { reason } = &ending {
        // Neither party is told by an update: both get the result.
        let draft = UpdateDraft::by_requester(&job, JobUpdateKind::Rejected, reason.as_deref());
        timeline::record_update(txn, &job, draft, &[]).await?;
    }
    let effect = reputation::score_effect_of(&job, &ending);
    let end = settle_credits(txn, &job, ending).await?;
    let paid = end.paid.unwrap_or(Credits::ZERO);
    reputation::apply_score_effect(txn, &job, effect, paid).await?;
    jobs::close_job(&txn.tx, job.id, next_state, &end).await?;
    *txn.counter_deltas.market.jobs.count_mut(job.state) -= 1;
    *txn.counter_deltas.market.jobs.count_mut(next_state) += 1;
    let job = JobRecord {
        state: next_state,
        end: Some(end),
        delivery: None,
        lease_until: None,
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
            let paid = agreed_price(job, cost)?;
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
        JobEnding::Approved => {
            let delivery = job.delivery.clone().unwrap_or_default();
            let paid = delivery.paid.unwrap_or(job.cost);
            ledger::pay_from_hold(txn, job_ref, job.payer, job.payee, paid).await?;
            JobEndRecord {
                at: end.at,
                ..delivery
            }
        }
        JobEnding::Rejected { reason } => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            let reason = reason.unwrap_or_else(|| "the delivery was rejected".into());
            JobEndRecord {
                took_ms: job.delivery.as_ref().and_then(|delivery| delivery.took_ms),
                ..end.with_error(REJECTED_CODE, reason)
            }
        }
        JobEnding::Cancelled => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            end.with_error(CANCELLED_CODE, "the job was cancelled".into())
        }
        JobEnding::Expired => {
            ledger::release_hold(txn, job_ref, job.payer).await?;
            end.with_error(DEADLINE_CODE, "no result came before the deadline".into())
        }
    })
}

impl JobEndRecord {
    fn with_error(self, code: &str, message: String) -> Self {
        Self {
            error_code: Some(code.to_owned()),
            error: Some(message),
            ..self
        }
    }
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
    // A worker that reported the end itself knows it.
    let is_told_worker = match job.state {
        JobState::Cancelled | JobState::Expired => true,
        JobState::Done | JobState::Failed => job.terms.approve_ms.is_some(),
        JobState::Requested
        | JobState::Open
        | JobState::Held
        | JobState::Dispatched
        | JobState::InputRequired
        | JobState::Delivered => false,
    };
    if is_told_worker && job.has_worker() && job.worker != job.requester {
        txn.append_entry(job_entry(job.worker.into(), job.worker_name.clone()));
    }
    txn.append_entry(job_entry(job.requester.into(), job.requester_name.clone()));
    Ok(())
}
