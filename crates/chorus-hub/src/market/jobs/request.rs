//! Asking for a job: who can do it, is it worth it, is there money for it; then it is held and handed over.

use super::{Event, State, dispatch, standing};
use crate::identity::{self, Agent};
use crate::market::ledger::{self, JobRef};
use crate::market::skills::{self, Offer};
use crate::market::{liveness, schema};
use crate::store::jobs::{self, Job, NewJob};
use crate::store::{Kind, NewEntry, Txn};
use crate::{Hub, Principal, Result, clock};
use chorus_wire::identity::Name;
use chorus_wire::market::credits::CURRENCY;
use chorus_wire::market::job::{self as wire, JobBody, JobRequest};
use chorus_wire::{Code, Error, limits};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `POST /jobs`: the job as it stands once its budget is held. `hub_url` is where workers reach this hub.
pub async fn request(
    who: &Principal,
    hub: &Hub,
    request: JobRequest,
    hub_url: &str,
) -> Result<wire::Job> {
    let me = who.agent()?.clone();
    if let Some(named) = &request.orchestrator_id {
        is_me(hub, &me, named).await?;
    }
    let fingerprint: [u8; 32] = Sha256::digest(&request.canonical).into();
    let job_id = request
        .job_id
        .clone()
        .unwrap_or_else(|| clock::new_id().to_string());
    let best = match looked(hub, &me, &request).await? {
        // The first answer stands, whatever has become of the worker or the credits since.
        Looked::Before(job) => {
            return same(*job, &me, &fingerprint).map(|job| standing::shown(&job, false));
        }
        Looked::New(best) => best,
    };
    let offer = chosen(hub, &me, &request, best.map(|best| *best)).await?;
    if let Some(url) = &request.callback_url {
        hub.outgoing().admit(url).await?;
    }
    let hub_url = hub_url.to_owned();
    let asked = Asked {
        me,
        request,
        job_id,
        fingerprint,
        offer,
        hub_url,
    };
    let (job, new) = hub
        .store()
        .write(async move |txn| keep(txn, &asked).await)
        .await?;
    if new && job.state == State::Held {
        dispatch::start(hub, job.id);
    }
    Ok(standing::shown(&job, false))
}

async fn is_me(hub: &Hub, me: &Agent, named: &str) -> Result<()> {
    let name = Name::parse("orchestrator_id", named)?;
    match identity::find(hub, &name).await? {
        Some(found) if found.id == me.id => Ok(()),
        Some(_) | None => Err(Error::new(
            Code::Forbidden,
            "orchestrator_id must be the agent whose key this is",
        )),
    }
}

/// The same request again, or somebody else's id.
fn same(job: Job, me: &Agent, fingerprint: &[u8; 32]) -> Result<Job> {
    let same = job.orchestrator == me.id && job.fingerprint == fingerprint;
    if same {
        Ok(job)
    } else {
        Err(Code::JobConflict.into())
    }
}

/// What the store knows before anything is decided, in one look.
enum Looked {
    /// The job_id was used.
    Before(Box<Job>),
    /// It was not, and this is the best offer, unless somebody was named.
    New(Option<Box<Offer>>),
}

async fn looked(hub: &Hub, me: &Agent, request: &JobRequest) -> Result<Looked> {
    // A name that this hub has made up is new.
    let (job_id, budget, me, hub_there) =
        (request.job_id.clone(), request.budget, me.id, hub.clone());
    let skill_name = request
        .agent_id
        .is_none()
        .then(|| request.skill_name.clone());
    hub.store()
        .read(async move |tx| {
            if let Some(job_id) = job_id
                && let Some(job) = jobs::by_name(tx, &job_id).await?
            {
                return Ok(Looked::Before(Box::new(job)));
            }
            Ok(Looked::New(match skill_name {
                Some(name) => skills::best(tx, &hub_there, &name, budget, me)
                    .await?
                    .map(Box::new),
                None => None,
            }))
        })
        .await
}

/// Who does it: the agent that was named, or the best there is within the budget.
async fn chosen(hub: &Hub, me: &Agent, request: &JobRequest, best: Option<Offer>) -> Result<Offer> {
    let lacks = || {
        Error::new(
            Code::SkillMismatch,
            format!("nobody offers the skill {}", request.skill_name),
        )
    };
    let dear = |cost| {
        Error::new(
            Code::BudgetInsufficient,
            format!("the skill costs {cost}, more than the budget"),
        )
    };
    let offer = match &request.agent_id {
        Some(named) => {
            let agent = identity::find(hub, &Name::parse("agent_id", named)?)
                .await?
                .ok_or(Code::AgentNotFound)?;
            let offer = skills::offer(hub, &agent, &request.skill_name).await?;
            offer.ok_or_else(|| {
                Error::new(
                    Code::SkillMismatch,
                    format!("the agent does not offer {}", request.skill_name),
                )
            })?
        }
        None => match best {
            Some(offer) => offer,
            None => match skills::cheapest(hub, &request.skill_name, me.id).await? {
                Some(cost) => return Err(dear(cost)),
                None => return Err(lacks()),
            },
        },
    };
    if offer.cost > request.budget {
        return Err(dear(offer.cost));
    }
    schema::check_input(&offer.skill, &request.input_data)?;
    if liveness::is_online(hub, &offer.agent) {
        Ok(offer)
    } else {
        Err(Code::AgentOffline.into())
    }
}

struct Asked {
    me: Arc<Agent>,
    request: JobRequest,
    job_id: String,
    fingerprint: [u8; 32],
    offer: Offer,
    hub_url: String,
}

/// Holds the budget and keeps the job; a worker without an endpoint has it on its inbox with the same commit.
async fn keep(txn: &mut Txn<'_>, asked: &Asked) -> Result<(Job, bool)> {
    let Asked {
        me,
        request,
        job_id,
        fingerprint,
        offer,
        hub_url,
    } = asked;
    let endpoint = offer.endpoint.as_deref().and_then(dispatch::endpoint);
    let now = txn.now();
    let deadline = now.plus(request.deadline);
    let body = JobBody {
        callback_url: Some(format!("{hub_url}/jobs/{job_id}/result")),
        job_id: job_id.clone(),
        orchestrator_id: me.agent_id.to_string(),
        skill_name: request.skill_name.clone(),
        input_data: request.input_data.clone(),
        budget: request.budget,
        currency: CURRENCY.into(),
        timestamp_utc: now,
        deadline_utc: deadline,
    };
    let text = serde_json::to_string(&body).map_err(Error::internal)?;
    let held = State::Requested.after(Event::Hold);
    // Without an endpoint it is on the worker's inbox with this very commit.
    let state = if endpoint.is_some() {
        held
    } else {
        held.and_then(|held| held.after(Event::Dispatch))
    };
    let state = state.ok_or_else(|| Error::internal("a new job cannot be held"))?;
    let new = NewJob {
        job_id: &body.job_id,
        fingerprint,
        orchestrator: me.id,
        worker: offer.agent.id,
        payer: me.owner,
        payee: offer.agent.owner,
        skill: &body.skill_name,
        budget: request.budget,
        cost: offer.cost,
        state,
        endpoint: endpoint.as_deref(),
        callback_url: request.callback_url.as_deref(),
        body: &text,
        deadline,
        attempt_at: now.plus(limits::OUTBOX_LEASE),
    };
    let Some(id) = jobs::insert(&txn.tx, &new, now).await? else {
        let job = jobs::by_name(&txn.tx, &body.job_id)
            .await?
            .ok_or(Code::JobConflict)?;
        return Ok((same(job, me, fingerprint)?, false));
    };
    ledger::hold(
        txn,
        me.owner,
        JobRef {
            id,
            job_id: &body.job_id,
        },
        request.budget,
    )
    .await?;
    *txn.counts.market.jobs.of(state) += 1;
    let job = new.kept(id, now, me.agent_id.clone(), offer.agent.agent_id.clone());
    if endpoint.is_none() {
        to_inbox(txn, &job);
    }
    Ok((job, true))
}

fn to_inbox(txn: &mut Txn<'_>, job: &Job) {
    txn.append(NewEntry {
        subject: job.worker,
        subject_name: job.worker_name.clone(),
        kind: Kind::Job,
        actor: job.orchestrator,
        actor_name: job.orchestrator_name.clone(),
        body: job.body.as_str().into(),
        otherwise: None,
    });
}
