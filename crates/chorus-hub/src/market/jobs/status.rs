//! Job status, for the job's requester and worker and for operators only.

use crate::context::HubContext;
use crate::store::jobs::{self, JobPage, JobRecord, JobRole, NO_WORKER};
use crate::store::{JobId, JobState, RowId, job_updates};
use crate::{Principal, Result};
use chorus_wire::credits::CURRENCY;
use chorus_wire::list_page::ListPage;
use chorus_wire::market::job::{self as wire, DispatchedJob, JobStatus};
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::Value;

/// `GET /jobs/{id}`, with its input and its timeline.
pub async fn get_job(principal: &Principal, hub: &HubContext, job_id: &str) -> Result<wire::Job> {
    if matches!(principal, Principal::Anonymous) {
        return Err(ErrorCode::Unauthorized.into());
    }
    // Other agents get 404, so that they do not learn that the job exists.
    let job = find_job(hub, job_id)
        .await?
        .filter(|job| is_party(principal, job))
        .ok_or(ErrorCode::NotFound)?;
    let job_row = job.id;
    let timeline = hub
        .store()
        .read(async move |tx| Ok(job_updates::list_updates(tx, job_row).await?))
        .await?;
    Ok(wire::Job {
        timeline: Some(timeline),
        ..describe_job(&job, true)
    })
}

/// Whether the principal may see the job. A job on the board is for every agent to see.
fn is_party(principal: &Principal, job: &JobRecord) -> bool {
    match principal {
        Principal::Anonymous => false,
        Principal::Agent(agent) => {
            agent.id == job.requester || agent.id == job.worker || job.state == JobState::Open
        }
        Principal::Operator(_) => true,
    }
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
) -> Result<ListPage<wire::Job>> {
    // An operator sees the jobs of all agents.
    let agent_id = match principal {
        Principal::Operator(_) => None,
        Principal::Anonymous | Principal::Agent(_) => Some(principal.require_agent()?.id),
    };
    let role_filter = match role {
        // An operator has no role in a job.
        None | Some("orchestrator" | "worker" | "agent") if agent_id.is_none() => JobRole::AnyAgent,
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
                .filter(|job| is_party(principal, job));
            job.ok_or(ErrorCode::NotFound)?.id
        }
    };
    let limit = limit.clamp(1, limits::JOBS_PAGE);
    let found = hub
        .store()
        .read(async move |tx| {
            let agent = agent_id.unwrap_or(NO_WORKER);
            Ok(jobs::list_jobs(tx, agent, role_filter, &status_filter, before_id, limit).await?)
        })
        .await?;
    // A worker that comes back does what waits for it: those jobs come with their input.
    let needs_input =
        |job: &JobRecord| job.end.is_none() && agent_id.is_some_and(|agent| agent == job.worker);
    Ok(ListPage {
        next: next_job_id(&found),
        rows: found
            .jobs
            .iter()
            .map(|job| describe_job(job, needs_input(job)))
            .collect(),
    })
}

/// Where the next page of a list continues: after the last job that was looked at.
pub(super) fn next_job_id(page: &JobPage) -> Option<String> {
    let last = page.jobs.last().filter(|_| !page.is_complete);
    last.map(|job| job.job_id.clone())
}

pub(super) async fn find_job(hub: &HubContext, job_id: &str) -> Result<Option<JobRecord>> {
    let job_id = job_id.to_owned();
    hub.store()
        .read(async move |tx| Ok(jobs::find_job_by_job_id(tx, &job_id).await?))
        .await
}

/// The job as clients see it; `with_input` adds the input, for requests of one single job and for those that shall do it.
pub(super) fn describe_job(job: &JobRecord, with_input: bool) -> wire::Job {
    let end = job.end.clone().or_else(|| job.delivery.clone());
    let end = end.unwrap_or_default();
    let input = || {
        serde_json::from_str::<DispatchedJob>(&job.body)
            .ok()
            .map(|body| body.input_data)
    };
    wire::Job {
        job_id: job.job_id.clone(),
        agent_id: job.has_worker().then(|| job.worker_name.to_string()),
        status: job.state.wire_status(),
        output_data: end
            .output
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or(Value::Null),
        // Numbers also before the end, as the document prints them (JOB-19).
        execution_cost: Some(end.paid.unwrap_or_default()),
        execution_time_ms: Some(end.took_ms.map_or(0, |ms| ms as u64)),
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
        deadline_utc: job.closes_at,
        progress: job.talk.progress.clone(),
        question: job.talk.question.clone(),
        answer: job.talk.answer.clone(),
        approve_within_ms: job.terms.approve_ms.map(i64::unsigned_abs),
        lease_utc: job.lease_until,
        timeline: None,
    }
}
