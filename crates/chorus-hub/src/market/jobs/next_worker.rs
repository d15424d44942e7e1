//! A worker does not do its job after all: the job goes to the next best worker, back to the board, or ends.

use super::dispatch;
use super::finish::{self, JobEnding};
use super::move_job;
use super::timeline::{self, NotifiedParty, UpdateDraft};
use crate::Result;
use crate::context::HubContext;
use crate::limits;
use crate::market::schema_checks;
use crate::market::skills::{self, WorkerOffer};
use crate::store::job_board::{self, JobAssignment};
use crate::store::jobs::{self, JobRecord, NO_PAYEE, NO_WORKER};
use crate::store::{JobEvent, JobState, WriteTxn, job_updates, principals};
use chorus_wire::market::job::{DispatchedJob, JobOutcome, JobUpdateKind};
use chorus_wire::{Error, ErrorCode, limits as wire_limits};

/// Why a worker does not do its job. None of it lowers its score.
#[derive(Clone, Debug)]
pub(super) struct HandBack {
    /// Declined, unreachable or lapsed.
    pub kind: JobUpdateKind,
    pub code: String,
    pub message: String,
}

impl HandBack {
    pub fn unreachable() -> Self {
        Self {
            kind: JobUpdateKind::Unreachable,
            code: ErrorCode::AgentOffline.as_str().to_owned(),
            message: ErrorCode::AgentOffline.sentence().to_owned(),
        }
    }

    /// What the worker said when it declined.
    pub fn from_outcome(kind: JobUpdateKind, outcome: &JobOutcome) -> Self {
        let (code, message) = match outcome {
            JobOutcome::Failure {
                error_code,
                error_message,
            } => (error_code.clone(), error_message.clone()),
            JobOutcome::Success { .. } | JobOutcome::Pending(_) => (None, String::new()),
        };
        Self {
            kind,
            code: code.unwrap_or_else(|| ErrorCode::AgentOffline.as_str().to_owned()),
            message,
        }
    }
}

/// Takes the job from its worker. Returns the job as it is then; unchanged when it ended, has another worker, or its worker reported
/// meanwhile.
pub(super) async fn hand_back(
    hub: &HubContext,
    job: JobRecord,
    back: HandBack,
) -> Result<JobRecord> {
    let next_offer = if job.terms.any_worker && !job.terms.board {
        find_next_offer(hub, &job).await?
    } else {
        None
    };
    let (job, as_requested) = hub
        .store()
        .write(async move |txn| {
            let current = jobs::find_job(&txn.tx, job.id)
                .await?
                .ok_or(ErrorCode::NotFound)?;
            let is_same_worker = current.worker == job.worker;
            if !is_same_worker || current.state.next_state(JobEvent::Reassign).is_none() {
                return Ok((current, true));
            }
            // The worker reported after the lapsed lease was found: the report renewed it, or asked a question, during which
            // there is none.
            let clock = txn.expiry_clock();
            let is_reported = back.kind == JobUpdateKind::Lapsed && !current.is_lease_over(clock);
            if is_reported {
                return Ok((current, true));
            }
            if current.is_overdue(clock) {
                return finish::close_or_expire(txn, current, JobEnding::Expired).await;
            }
            if current.terms.board {
                return return_to_board(txn, current, &back)
                    .await
                    .map(|job| (job, true));
            }
            if let Some(offer) = &next_offer {
                let job = reassign(txn, current, &back, offer).await?;
                return Ok((job, true));
            }
            let ending = JobEnding::Failed {
                code: back.code.clone(),
                message: back.message.clone(),
                took_ms: None,
                affects_reputation: false,
            };
            let draft = UpdateDraft::by_worker(&current, back.kind, Some(&back.message));
            timeline::record_update(txn, &current, draft, &[]).await?;
            finish::close_or_expire(txn, current, ending).await
        })
        .await?;
    if job.end.is_some() {
        finish::job_reply(hub, (job.clone(), as_requested)).map(drop)?;
    }
    if job.state == JobState::Held && job.endpoint.is_some() {
        dispatch::spawn_dispatch(hub, job.id);
    }
    Ok(job)
}

/// The best offer of an agent that has not had the job, is online and takes its input.
async fn find_next_offer(hub: &HubContext, job: &JobRecord) -> Result<Option<WorkerOffer>> {
    let job_row = job.id;
    let former = hub
        .store()
        .read(async move |tx| Ok(job_updates::list_former_workers(tx, job_row).await?))
        .await?;
    if former.len() + 1 >= wire_limits::JOB_WORKERS_TRIED {
        return Ok(None);
    }
    let body: DispatchedJob = serde_json::from_str(&job.body).map_err(Error::internal)?;
    let mut excluded = former;
    excluded.push(job.worker);
    for _ in 0..wire_limits::JOB_WORKERS_TRIED {
        let hub_handle = hub.clone();
        let skill_name = job.skill.clone();
        let requester = job.requester;
        let budget = job.budget;
        let former = excluded.clone();
        let offer = hub
            .store()
            .read(async move |tx| {
                let Some(requester) = principals::find_agent(tx, requester).await? else {
                    return Ok(None);
                };
                skills::find_best_offer(tx, &hub_handle, &skill_name, budget, &requester, &former)
                    .await
            })
            .await?;
        let Some(offer) = offer.filter(|offer| offer.is_online(hub)) else {
            return Ok(None);
        };
        match schema_checks::check_input(&offer.skill, &body.input_data).await {
            Ok(()) => return Ok(Some(offer)),
            Err(error) if error.code == ErrorCode::SkillMismatch => excluded.push(offer.agent.id),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

async fn reassign(
    txn: &mut WriteTxn<'_>,
    mut job: JobRecord,
    back: &HandBack,
    offer: &WorkerOffer,
) -> Result<JobRecord> {
    let draft = UpdateDraft::by_worker(&job, back.kind, Some(&back.message));
    timeline::record_update(txn, &job, draft, &[NotifiedParty::Requester]).await?;
    move_job(txn, &mut job, JobEvent::Reassign).await?;
    job.terms.output_schema = offer.output_schema();
    job.worker = offer.agent.id;
    job.worker_name = offer.agent.agent_id.clone();
    job.payee = offer.agent.owner;
    job.cost = offer.cost;
    job.endpoint = offer.endpoint.clone();
    job.talk.progress = None;
    job_board::assign_worker(
        &txn.tx,
        job.id,
        &JobAssignment {
            worker: job.worker,
            payee: job.payee,
            cost: job.cost,
            endpoint: job.endpoint.as_deref(),
            output_schema: job.terms.output_schema.as_deref(),
            lease_until: None,
            dispatch_due_at: txn.now().saturating_add(limits::OUTBOX_LEASE),
        },
    )
    .await?;
    if job.endpoint.is_none() {
        move_job(txn, &mut job, JobEvent::Dispatch).await?;
        dispatch::append_job_entry(txn, &job);
    }
    Ok(job)
}

/// The job is open again. Its former worker cannot claim it a second time.
async fn return_to_board(
    txn: &mut WriteTxn<'_>,
    mut job: JobRecord,
    back: &HandBack,
) -> Result<JobRecord> {
    let draft = UpdateDraft::by_worker(&job, back.kind, Some(&back.message));
    move_job(txn, &mut job, JobEvent::Return).await?;
    job.worker = NO_WORKER;
    job.worker_name = "".into();
    job.payee = NO_PAYEE;
    job.cost = job.budget;
    job.lease_until = None;
    job.talk.progress = None;
    job.terms.output_schema = None;
    job_board::assign_worker(
        &txn.tx,
        job.id,
        &JobAssignment {
            worker: NO_WORKER,
            payee: NO_PAYEE,
            cost: job.budget,
            endpoint: None,
            output_schema: None,
            lease_until: None,
            dispatch_due_at: txn.now(),
        },
    )
    .await?;
    timeline::record_update(
        txn,
        &job,
        draft,
        &[NotifiedParty::Requester, NotifiedParty::Worker],
    )
    .await?;
    Ok(job)
}
