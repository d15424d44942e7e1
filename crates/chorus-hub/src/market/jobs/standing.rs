//! Where jobs stand, for their parties and operators and for nobody else.

use super::State;
use crate::store::jobs::{self, Job, Part};
use crate::{Hub, Principal, Result};
use chorus_wire::market::credits::CURRENCY;
use chorus_wire::market::job::{self as wire, JobBody, Jobs, Status};
use chorus_wire::{Code, Error, limits};
use serde_json::Value;

/// `GET /jobs/{id}`
pub async fn standing(who: &Principal, hub: &Hub, job_id: &str) -> Result<wire::Job> {
    let job = find(hub, job_id).await?;
    let concerned = |job: &Job| match who {
        Principal::Anyone => false,
        Principal::Agent(agent) => agent.id == job.orchestrator || agent.id == job.worker,
        Principal::Operator(_) => true,
    };
    if matches!(who, Principal::Anyone) {
        return Err(Code::Unauthorized.into());
    }
    // A stranger learns nothing, not even that it exists.
    Ok(shown(&job.filter(concerned).ok_or(Code::NotFound)?, true))
}

/// `GET /jobs`; a page that is full of bytes is short, and the next one goes on after it.
pub async fn list(
    who: &Principal,
    hub: &Hub,
    role: Option<&str>,
    status: Option<&str>,
    before: Option<&str>,
    limit: usize,
) -> Result<Jobs> {
    let me = who.agent()?.id;
    let part = match role {
        None => Part::Either,
        Some("orchestrator") => Part::Orchestrator,
        Some("worker" | "agent") => Part::Worker,
        Some(_) => return Err(Error::validation("role must be orchestrator or worker")),
    };
    let filter = match status {
        None => String::new(),
        Some(text) if Status::parse(text).is_some() || State::parse(text).is_some() => {
            text.to_owned()
        }
        Some(_) => {
            let said = "status must be PENDING, SUCCESS, FAILURE or a state such as dispatched";
            return Err(Error::validation(said));
        }
    };
    let before = match before {
        None => i64::MAX,
        // Whoever has no part in it is not told that it is there.
        Some(job_id) => {
            let job = find(hub, job_id)
                .await?
                .filter(|job| job.orchestrator == me || job.worker == me);
            job.ok_or(Code::NotFound)?.id
        }
    };
    let limit = limit.clamp(1, limits::JOBS_PAGE);
    let found = hub
        .store()
        .read(async move |tx| Ok(jobs::list(tx, me, part, &filter, before, limit).await?))
        .await?;
    Ok(Jobs {
        jobs: found.iter().map(|job| shown(job, false)).collect(),
    })
}

pub(super) async fn find(hub: &Hub, job_id: &str) -> Result<Option<Job>> {
    let job_id = job_id.to_owned();
    hub.store()
        .read(async move |tx| Ok(jobs::by_name(tx, &job_id).await?))
        .await
}

/// The job as it is shown; what it was to work on only where somebody asks for this one job.
pub(super) fn shown(job: &Job, with_input: bool) -> wire::Job {
    let end = job.end.clone().unwrap_or_default();
    let input = || {
        serde_json::from_str::<JobBody>(&job.body)
            .ok()
            .map(|body| body.input_data)
    };
    wire::Job {
        job_id: job.job_id.clone(),
        agent_id: job.worker_name.to_string(),
        status: job.state.status(),
        output_data: end
            .output
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or(Value::Null),
        execution_cost: end.paid,
        execution_time_ms: end.took_ms.map(|ms| ms as u64),
        error_message: end.error,
        timestamp_utc: if job.end.is_some() {
            end.at
        } else {
            job.requested_at
        },
        error_code: end.error_code,
        state: job.state.as_str().to_owned(),
        orchestrator_id: job.orchestrator_name.to_string(),
        skill_name: job.skill.clone(),
        input_data: if with_input { input() } else { None },
        budget: job.budget,
        currency: CURRENCY.to_owned(),
        requested_at: job.requested_at,
        deadline_utc: job.deadline,
    }
}
