//! Requests a job: selects a worker, checks input, cost and balance, then holds the budget and
//! dispatches the job.

use super::{dispatch, status};
use crate::context::HubContext;
use crate::identity::{self, Agent};
use crate::limits;
use crate::market::ledger::{self, JobRef};
use crate::market::schema_checks;
use crate::market::skills::{self, WorkerOffer};
use crate::store::jobs::{self, JobRecord, JobTerms, NO_PAYEE, NO_WORKER, NewJob};
use crate::store::request_scope::RequestScope;
use crate::store::{JobEvent, JobId, JobState, WriteTxn, owner_usage};
use crate::{Principal, Result, random};
use chorus_wire::credits::CURRENCY;
use chorus_wire::identity::AgentName;
use chorus_wire::market::job::{self as wire, DispatchedJob, JobRequest};
use chorus_wire::usage::QuotaName;
use chorus_wire::{Error, ErrorCode, time::UnixMicros};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `POST /jobs`: returns the job once its budget is held. `hub_url` is where workers reach this
/// hub.
pub async fn request_job(
    principal: &Principal,
    hub: &HubContext,
    request: JobRequest,
    hub_url: &str,
) -> Result<wire::Job> {
    let requester = principal.require_agent()?.clone();
    if let Some((job, _)) = RequestScope::take_kept::<(wire::Job, Option<i64>)>()? {
        return Ok(job);
    }
    if let Some(named_agent) = &request.orchestrator_id {
        check_orchestrator(hub, &requester, named_agent).await?;
    }
    let fingerprint: [u8; 32] = Sha256::digest(&request.canonical_json).into();
    let job_id = request
        .job_id
        .clone()
        .unwrap_or_else(|| random::new_id().to_string());
    let best = match find_existing_or_best_offer(hub, &requester, &request).await? {
        // The first answer stands, whatever has happened to the worker or the credits since.
        ExistingOrOffer::Existing(job) => {
            return check_same_request(*job, &requester, &fingerprint)
                .map(|job| status::describe_job(&job, false));
        }
        ExistingOrOffer::New(best) => best,
    };
    let offer = match request.board {
        // The worker will choose itself. Its own terms are checked when it claims the job.
        Some(_) => None,
        None => Some(select_worker(hub, &requester, &request, best.map(|best| *best)).await?),
    };
    if let Some(url) = &request.callback_url {
        hub.outgoing_client().check_endpoint(url)?;
    }
    let hub_url = hub_url.to_owned();
    let draft = JobDraft {
        requester,
        request,
        job_id,
        fingerprint,
        offer,
        hub_url,
    };
    let (job, held_id) = hub
        .store()
        .write_repeatable(async move |txn| {
            let (job, is_new) = insert_job(txn, &draft).await?;
            let held_id = (is_new && job.state == JobState::Held).then_some(job.id.0);
            Ok((status::describe_job(&job, false), held_id))
        })
        .await?;
    if let Some(held_id) = held_id {
        dispatch::spawn_dispatch(hub, JobId(held_id));
    }
    Ok(job)
}

async fn check_orchestrator(hub: &HubContext, requester: &Agent, named_agent: &str) -> Result<()> {
    let name = AgentName::parse("orchestrator_id", named_agent)?;
    match identity::find_agent(hub.identity(), &name).await? {
        Some(found) if found.id == requester.id => Ok(()),
        Some(_) | None => Err(Error::new(
            ErrorCode::Forbidden,
            "orchestrator_id must be the agent whose key this is",
        )),
    }
}

/// The job, if this is its request again; `ERR_JOB_CONFLICT` when the job id belongs to another
/// request.
fn check_same_request(
    job: JobRecord,
    requester: &Agent,
    fingerprint: &[u8; 32],
) -> Result<JobRecord> {
    let is_same = job.requester == requester.id && job.fingerprint == fingerprint;
    if is_same {
        Ok(job)
    } else {
        Err(ErrorCode::JobConflict.into())
    }
}

/// What one read of the store finds before a worker is selected.
enum ExistingOrOffer {
    /// The job with the requested job_id.
    Existing(Box<JobRecord>),
    /// No job has this job_id. The best offer, unless the request names a worker.
    New(Option<Box<WorkerOffer>>),
}

async fn find_existing_or_best_offer(
    hub: &HubContext,
    requester: &Arc<Agent>,
    request: &JobRequest,
) -> Result<ExistingOrOffer> {
    // Only a job_id of the client is looked up; one that this hub generates is new.
    let job_id = request.job_id.clone();
    let budget = request.budget;
    let requester = requester.clone();
    let hub_handle = hub.clone();
    let skill_name =
        (request.agent_id.is_none() && request.board.is_none()).then(|| request.skill_name.clone());
    hub.store()
        .read(async move |tx| {
            if let Some(job_id) = job_id
                && let Some(job) = jobs::find_job_by_job_id(tx, &job_id).await?
            {
                return Ok(ExistingOrOffer::Existing(Box::new(job)));
            }
            Ok(ExistingOrOffer::New(match skill_name {
                Some(name) => {
                    skills::find_best_offer(tx, &hub_handle, &name, budget, &requester, &[])
                        .await?
                        .map(Box::new)
                }
                None => None,
            }))
        })
        .await
}

/// Selects the worker: the agent that the request names, or the best offer within the budget.
async fn select_worker(
    hub: &HubContext,
    requester: &Agent,
    request: &JobRequest,
    best: Option<WorkerOffer>,
) -> Result<WorkerOffer> {
    let skill_not_offered = || {
        Error::new(
            ErrorCode::SkillMismatch,
            format!("no agent offers the skill {}", request.skill_name),
        )
    };
    let over_budget = |cost| {
        Error::new(
            ErrorCode::BudgetInsufficient,
            format!("the skill costs {cost}, more than the budget"),
        )
    };
    let offer = match &request.agent_id {
        Some(named_agent) => {
            let agent =
                identity::find_agent(hub.identity(), &AgentName::parse("agent_id", named_agent)?)
                    .await?
                    .ok_or(ErrorCode::AgentNotFound)?;
            hub.identity()
                .check_contact(agent.id, agent.contact_limits, requester)
                .await?;
            let offer = skills::find_offer(hub, &agent, &request.skill_name).await?;
            offer.ok_or_else(|| {
                Error::new(
                    ErrorCode::SkillMismatch,
                    format!("the agent does not offer {}", request.skill_name),
                )
            })?
        }
        None => match best {
            Some(offer) => offer,
            None => match skills::find_lowest_cost(hub, &request.skill_name, requester.id).await? {
                Some(cost) if cost > request.budget => return Err(over_budget(cost)),
                Some(_) => {
                    return Err(Error::new(
                        ErrorCode::NotAContact,
                        "no agent that offers the skill takes jobs from you",
                    ));
                }
                None => return Err(skill_not_offered()),
            },
        },
    };
    if offer.cost > request.budget {
        return Err(over_budget(offer.cost));
    }
    schema_checks::check_input(&offer.skill, &request.input_data).await?;
    if offer.is_online(hub) {
        Ok(offer)
    } else {
        Err(ErrorCode::AgentOffline.into())
    }
}

struct JobDraft {
    requester: Arc<Agent>,
    request: JobRequest,
    job_id: String,
    fingerprint: [u8; 32],
    /// `None` for a job on the board.
    offer: Option<WorkerOffer>,
    hub_url: String,
}

impl JobDraft {
    fn terms(&self) -> JobTerms {
        let approve_within = self.request.board.and_then(|terms| terms.approve_within);
        JobTerms {
            any_worker: self.request.agent_id.is_none(),
            board: self.request.board.is_some(),
            approve_ms: approve_within.map(|window| window.as_millis() as i64),
            output_schema: self.offer.as_ref().and_then(WorkerOffer::output_schema),
        }
    }
}

/// Holds the budget and stores the job. A worker without an endpoint gets it on its inbox with the
/// same commit.
async fn insert_job(txn: &mut WriteTxn<'_>, draft: &JobDraft) -> Result<(JobRecord, bool)> {
    let JobDraft {
        requester,
        request,
        fingerprint,
        offer,
        ..
    } = draft;
    let worker = offer.as_ref().map(|offer| &offer.agent);
    let endpoint = offer.as_ref().and_then(|offer| offer.endpoint.as_deref());
    let open_jobs = owner_usage::count_open_jobs(&txn.tx, requester.owner).await?;
    let now = txn.now();
    let deadline = now.saturating_add(request.deadline);
    let body = build_dispatch(draft, now, deadline);
    let body_json = serde_json::to_string(&body).map_err(Error::internal)?;
    let state = first_state(request.board.is_some(), endpoint.is_some())?;
    let new_job = NewJob {
        job_id: &body.job_id,
        fingerprint,
        requester: requester.id,
        worker: worker.map_or(NO_WORKER, |worker| worker.id),
        payer: requester.owner,
        payee: worker.map_or(NO_PAYEE, |worker| worker.owner),
        skill: &body.skill_name,
        budget: request.budget,
        cost: offer.as_ref().map_or(request.budget, |offer| offer.cost),
        state,
        endpoint,
        callback_url: request.callback_url.as_deref(),
        body: &body_json,
        deadline,
        dispatch_due_at: now.saturating_add(limits::OUTBOX_LEASE),
        terms: draft.terms(),
    };
    let Some(id) = jobs::insert_job(&txn.tx, &new_job, now).await? else {
        let job = jobs::find_job_by_job_id(&txn.tx, &body.job_id)
            .await?
            .ok_or(ErrorCode::JobConflict)?;
        return Ok((check_same_request(job, requester, fingerprint)?, false));
    };
    let quotas = txn.hub_settings().quotas;
    quotas.check(QuotaName::OpenJobs, open_jobs + 1)?;
    ledger::hold_credits(
        txn,
        requester.owner,
        JobRef {
            id,
            job_id: &body.job_id,
        },
        request.budget,
    )
    .await?;
    *txn.counter_deltas.market.jobs.count_mut(state) += 1;
    let job = new_job.to_record(
        id,
        now,
        requester.agent_id.clone(),
        worker.map_or_else(|| "".into(), |worker| worker.agent_id.clone()),
    );
    if job.state == JobState::Dispatched {
        dispatch::append_job_entry(txn, &job);
    }
    Ok((job, true))
}

/// What the worker gets.
fn build_dispatch(draft: &JobDraft, now: UnixMicros, deadline: UnixMicros) -> DispatchedJob {
    let request = &draft.request;
    DispatchedJob {
        callback_url: Some(format!("{}/jobs/{}/result", draft.hub_url, draft.job_id)),
        job_id: draft.job_id.clone(),
        orchestrator_id: draft.requester.agent_id.to_string(),
        skill_name: request.skill_name.clone(),
        input_data: request.input_data.clone(),
        budget: request.budget,
        currency: CURRENCY.into(),
        timestamp_utc: now,
        deadline_utc: deadline,
        question: None,
        answer: None,
    }
}

/// Without an endpoint the job is on the worker's inbox with the commit that keeps it, and so it is dispatched.
fn first_state(is_on_board: bool, has_endpoint: bool) -> Result<JobState> {
    let held_state = JobState::Requested.next_state(JobEvent::Hold);
    let state = if is_on_board {
        JobState::Requested.next_state(JobEvent::Publish)
    } else if has_endpoint {
        held_state
    } else {
        held_state.and_then(|held_state| held_state.next_state(JobEvent::Dispatch))
    };
    state.ok_or_else(|| Error::internal("a new job cannot be held"))
}
