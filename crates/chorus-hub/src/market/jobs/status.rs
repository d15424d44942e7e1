//! Job status, for the job's requester and worker and for operators only.

use crate::context::HubContext;
use crate::store::jobs::{self, JobRecord, JobRole};
use crate::store::{JobId, JobState, RowId};
use crate::{Principal, Result};
use chorus_wire::credits::CURRENCY;
use chorus_wire::market::job::{self as wire, DispatchedJob, JobList, JobStatus};
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::Value;

/// `GET /jobs/{id}`
pub async fn get_job(principal: &Principal, hub: &HubContext, job_id: &str) -> Result<wire::Job> {
    let job = find_job(hub, job_id).await?;
    let is_party = |job: &JobRecord| match principal {
        Principal::Anonymous => false,
        Principal::Agent(agent) => agent.id == job.requester || agent.id == job.worker,
        Principal::Operator(_) => true,
    };
    if matches!(principal, Principal::Anonymous) {
        return Err(ErrorCode::Unauthorized.into());
    }
    // Other agents get 404, so that they do not learn that the job exists.
    Ok(describe_job(
        &job.filter(is_party).ok_or(ErrorCode::NotFound)?,
        true,
    ))
}

/// `GET /jobs`: pages are limited in bytes too, so one may hold fewer jobs than `limit`. The next
/// page continues after it.
pub async fn list_jobs(
    principal: &Principal,
    hub: &HubContext,
    role: Option<&str>,
    status: Option<&str>,
    before: Option<&str>,
    limit: usize,
) -> Result<JobList> {
    let agent_id = principal.require_agent()?.id;
    let role_filter = match role {
        None => JobRole::Either,
        Some("orchestrator") => JobRole::Requester,
        Some("worker" | "agent") => JobRole::Worker,
        Some(_) => return Err(Error::validation("role must be orchestrator or worker")),
    };
    let status_filter = match status {
        None => String::new(),
        Some(text) if JobStatus::parse(text).is_some() || JobState::parse(text).is_some() => {
            text.to_owned()
        }
        Some(_) => {
            let message = "status must be PENDING, SUCCESS, FAILURE or a state such as dispatched";
            return Err(Error::validation(message));
        }
    };
    let before_id = match before {
        None => JobId::AFTER_ALL,
        // Other agents get 404, so that they do not learn that the job exists.
        Some(job_id) => {
            let job = find_job(hub, job_id)
                .await?
                .filter(|job| job.requester == agent_id || job.worker == agent_id);
            job.ok_or(ErrorCode::NotFound)?.id
        }
    };
    let limit = limit.clamp(1, limits::JOBS_PAGE);
    let found = hub
        .store()
        .read(async move |tx| {
            Ok(
                jobs::list_jobs(tx, agent_id, role_filter, &status_filter, before_id, limit)
                    .await?,
            )
        })
        .await?;
    Ok(JobList {
        jobs: found.iter().map(|job| describe_job(job, false)).collect(),
    })
}

pub(super) async fn find_job(hub: &HubContext, job_id: &str) -> Result<Option<JobRecord>> {
    let job_id = job_id.to_owned();
    hub.store()
        .read(async move |tx| Ok(jobs::find_job_by_job_id(tx, &job_id).await?))
        .await
}

/// The job as clients see it; `with_input` adds the input, for requests of one single job.
pub(super) fn describe_job(job: &JobRecord, with_input: bool) -> wire::Job {
    let end = job.end.clone().unwrap_or_default();
    let input = || {
        serde_json::from_str::<DispatchedJob>(&job.body)
            .ok()
            .map(|body| body.input_data)
    };
    wire::Job {
        job_id: job.job_id.clone(),
        agent_id: job.worker_name.to_string(),
        status: job.state.wire_status(),
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
        orchestrator_id: job.requester_name.to_string(),
        skill_name: job.skill.clone(),
        input_data: if with_input { input() } else { None },
        budget: job.budget,
        currency: CURRENCY.to_owned(),
        requested_at: job.requested_at,
        deadline_utc: job.deadline,
    }
}
