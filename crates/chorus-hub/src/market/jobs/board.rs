//! The task board: open jobs, claims with a lease, and the approval of deliveries.

use super::finish::{self, JobEnding};
use super::next_worker::{self, HandBack};
use super::timeline::{self, NotifiedParty, UpdateDraft};
use super::{move_job, status};
use crate::context::HubContext;
use crate::identity::Agent;
use crate::market::schema_checks;
use crate::market::skills::{self, WorkerOffer};
use crate::store::job_board::{self, JobAssignment};
use crate::store::job_expiry;
use crate::store::jobs::{self, JobRecord};
use crate::store::{JobEvent, JobId, JobState, RowId, WriteTxn, job_updates, principals};
use crate::{Principal, Result, limits};
use chorus_wire::list_page::ListPage;
use chorus_wire::market::job::{self as wire, DispatchedJob, JobUpdateKind};
use chorus_wire::{Error, ErrorCode, limits as wire_limits};
use std::sync::Arc;

/// `GET /board`: the jobs that can be claimed, oldest first, with their inputs.
pub async fn list_board(
    principal: &Principal,
    hub: &HubContext,
    skill_name: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Result<ListPage<wire::Job>> {
    if matches!(principal, Principal::Anonymous) {
        return Err(ErrorCode::Unauthorized.into());
    }
    let after_id = match after {
        None => JobId::BEFORE_ALL,
        // A job that was claimed meanwhile still marks where the next page begins.
        Some(job_id) => {
            let job = status::find_job(hub, job_id)
                .await?
                .filter(|job| job.terms.board);
            job.ok_or(ErrorCode::NotFound)?.id
        }
    };
    // PostgreSQL refuses NUL in text; no skill has it in its name.
    let skill_name = skill_name.map(|name| name.replace('\0', ""));
    let limit = limit.clamp(1, wire_limits::BOARD_PAGE);
    let clock = hub.expiry_clock();
    let found = hub
        .store()
        .read(async move |tx| {
            Ok(job_board::list_open_jobs(tx, skill_name.as_deref(), after_id, limit).await?)
        })
        .await?;
    // An overdue job cannot be claimed, although the hub has not closed it yet.
    let is_open = |job: &&JobRecord| !job.is_overdue(clock);
    Ok(ListPage {
        next: status::next_job_id(&found),
        rows: found
            .jobs
            .iter()
            .filter(is_open)
            .map(|job| status::describe_job(job, true))
            .collect(),
    })
}

/// `POST /jobs/{id}/claim`: the first agent that claims a job has it. It must offer the skill within the budget, and take the input.
pub async fn claim_job(principal: &Principal, hub: &HubContext, job_id: &str) -> Result<wire::Job> {
    let claimer = principal.require_agent()?.clone();
    let job = status::find_job(hub, job_id)
        .await?
        .filter(|job| job.terms.board)
        .ok_or(ErrorCode::NotFound)?;
    if job.worker == claimer.id && job.end.is_none() {
        // A repeated claim: the first answer was lost.
        return Ok(status::describe_job(&job, true));
    }
    let offer = check_claim(hub, &claimer, &job).await?;
    let job = hub
        .store()
        .write(async move |txn| assign_claim(txn, &offer, job.id).await)
        .await?;
    hub.identity().record_agent_seen(job.worker);
    Ok(status::describe_job(&job, true))
}

/// The claimer's offer, if it fits the job.
async fn check_claim(
    hub: &HubContext,
    claimer: &Arc<Agent>,
    job: &JobRecord,
) -> Result<WorkerOffer> {
    if job.requester == claimer.id {
        return Err(Error::new(
            ErrorCode::Forbidden,
            "an agent does not claim its own job",
        ));
    }
    let requester_id = job.requester;
    let requester = hub
        .store()
        .read(async move |tx| Ok(principals::find_agent(tx, requester_id).await?))
        .await?
        .ok_or(ErrorCode::JobClosed)?;
    // The requester chooses who may write to it, and a claim puts its job into that agent's hands.
    hub.identity()
        .check_contact(requester.id, requester.contact_limits, claimer)
        .await?;
    let offer = skills::find_offer(hub, claimer, &job.skill).await?;
    let offer = offer.ok_or_else(|| {
        let message = format!("offer the skill {} before you claim the job", job.skill);
        Error::new(ErrorCode::SkillMismatch, message)
    })?;
    if offer.cost > job.budget {
        let message = format!(
            "your price is {}, more than the budget of {}",
            offer.cost, job.budget
        );
        return Err(Error::new(ErrorCode::BudgetInsufficient, message));
    }
    let body: DispatchedJob = serde_json::from_str(&job.body).map_err(Error::internal)?;
    schema_checks::check_input(&offer.skill, &body.input_data).await?;
    Ok(offer)
}

async fn assign_claim(
    txn: &mut WriteTxn<'_>,
    offer: &WorkerOffer,
    job_row: JobId,
) -> Result<JobRecord> {
    let mut job = jobs::find_job(&txn.tx, job_row)
        .await?
        .ok_or(ErrorCode::NotFound)?;
    if job.state != JobState::Open || job.is_overdue(txn.expiry_clock()) {
        let message = "the job is no longer on the board";
        return Err(Error::new(ErrorCode::JobClosed, message));
    }
    let former = job_updates::list_former_workers(&txn.tx, job.id).await?;
    if former.contains(&offer.agent.id) {
        let message = "you have had this job: you declined it or did not report in time";
        return Err(Error::new(ErrorCode::Forbidden, message));
    }
    move_job(txn, &mut job, JobEvent::Claim).await?;
    job.worker = offer.agent.id;
    job.worker_name = offer.agent.agent_id.clone();
    job.payee = offer.agent.owner;
    job.cost = offer.cost;
    job.terms.output_schema = offer.output_schema();
    let lease_until = txn.now().saturating_add(wire_limits::JOB_LEASE);
    job.lease_until = Some(lease_until);
    job_board::assign_worker(
        &txn.tx,
        job.id,
        &JobAssignment {
            worker: job.worker,
            payee: job.payee,
            cost: job.cost,
            // A claimed job is in the hands of its worker, also of one with an endpoint.
            endpoint: None,
            output_schema: job.terms.output_schema.as_deref(),
            lease_until: job.lease_until,
            dispatch_due_at: txn.now(),
        },
    )
    .await?;
    let draft = UpdateDraft::by_worker(&job, JobUpdateKind::Claimed, None);
    timeline::record_update(txn, &job, draft, &[NotifiedParty::Requester]).await?;
    Ok(job)
}

/// Returns claimed jobs whose workers have not reported in time to the board. No score moves: the worker may have been stopped, and
/// it cannot claim the job again.
pub(super) async fn return_lapsed_jobs(hub: &HubContext) -> Result<()> {
    let clock = hub.expiry_clock();
    let lapsed = hub
        .store()
        .read(
            async move |tx| Ok(job_expiry::list_lapsed_jobs(tx, clock, limits::JOBS_BATCH).await?),
        )
        .await?;
    for id in lapsed {
        let job = hub
            .store()
            .read(async move |tx| Ok(jobs::find_job(tx, id).await?))
            .await?;
        let Some(job) = job.filter(|job| job.is_lease_over(clock)) else {
            continue;
        };
        let back = HandBack {
            kind: JobUpdateKind::Lapsed,
            code: ErrorCode::AgentOffline.as_str().to_owned(),
            message: "the agent did not report within the lease".to_owned(),
        };
        next_worker::hand_back(hub, job, back).await?;
    }
    Ok(())
}

/// `POST /jobs/{id}/approve`: the requester accepts the delivery, and the worker is paid.
pub async fn approve_job(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
) -> Result<wire::Job> {
    judge_delivery(principal, hub, job_id, JobEnding::Approved).await
}

/// `POST /jobs/{id}/reject`: the requester does not pay for the delivery. No score moves.
pub async fn reject_job(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
    reason: Option<String>,
) -> Result<wire::Job> {
    judge_delivery(principal, hub, job_id, JobEnding::Rejected { reason }).await
}

async fn judge_delivery(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
    ending: JobEnding,
) -> Result<wire::Job> {
    let agent_id = principal.require_agent()?.id;
    let check_allowed = move |job: &JobRecord| match job.requester == agent_id {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Forbidden,
            "only the agent that asked for the job judges its delivery",
        )),
    };
    finish::finish_own_job(hub, agent_id, job_id, ending, check_allowed).await
}
