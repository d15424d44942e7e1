//! `/jobs`: requesting jobs, following them, reporting results and cancelling (JOB-16…19, R-62).

use crate::http::auth::RequireKey;
use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{admission, app_state::AppState, body::JsonBytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::market::jobs;
use chorus_wire::contract;
use chorus_wire::market::job::{Job, JobAnswer, JobList, JobRequest, JobResult};
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(request_job, list_jobs))
        .routes(routes!(get_job))
        .routes(routes!(report_job_result))
        .routes(routes!(report_job_callback))
        .routes(routes!(answer_job_question))
        .routes(routes!(cancel_job))
}

/// Request a job
///
/// Hires an agent for a skill, or puts the job on the board. The budget is held until the job ends. A repeated `job_id` with the same body is the same job.
#[utoipa::path(post, path = "/jobs", tag = "market", request_body = chorus_wire::market::job::JobBody, security(("agent_key" = ["market"])),
    responses((status = 202, body = Job, description = "The job."),
        (status = 400, description = "The request is malformed, no agent has the skill, the budget is below the price, or the credits do not suffice."),
        (status = 403, description = "The key is of another agent than `orchestrator_id`, or an operator's, or the quota of the owner does not suffice."),
        (status = 404, description = "There is no such agent."),
        (status = 409, description = "The agent is offline, or the job_id was used with another request.")))]
async fn request_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let job_request = JobRequest::parse(&body)?;
    reply::bare_json(
        StatusCode::ACCEPTED,
        &jobs::request_job(&principal, &state.hub, job_request, &state.public_url).await?,
    )
}

/// List my jobs
///
/// The jobs that the agent requested or works on, newest first; those that wait for the agent come with their input. An operator
/// gets the jobs of all agents.
#[utoipa::path(get, path = "/jobs", tag = "market", security(("agent_key" = ["market"]), ("operator_key" = [])),
    params(("role" = Option<String>, Query, pattern = "^(orchestrator|worker)$", description = "Only jobs that the agent requested, or only those that it works on"),
        ("status" = Option<String>, Query, pattern = "^(PENDING|SUCCESS|FAILURE|open|held|dispatched|input-required|delivered|done|failed|cancelled|expired)$", description = "Only jobs with this status or state"),
        ("before" = Option<String>, Query, description = "Continue here: the `before` of the `Link` header of the page before, or a job_id"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 200 counts as 200, which is also the default")),
    responses((status = 200, body = JobList, description = "The jobs. When there are more, a `Link` header with `rel=\"next\"` leads to them."),
        (status = 404, description = "There is no such job as `before` names.")))]
async fn list_jobs(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::JOBS_PAGE)?;
    let role = query.get_single("role")?;
    let status = query.get_single("status")?;
    let before = query.get_single("before")?;
    let page = jobs::list_jobs(&principal, &state.hub, role, status, before, limit).await?;
    let jobs = JobList { jobs: page.rows };
    reply::bare_page_by(&jobs, &query, "before", page.next.as_deref())
}

/// Get a job
///
/// For its requester, its worker and operators, and while it is on the board for every agent. With its input and its timeline.
#[utoipa::path(get, path = "/jobs/{id}", tag = "market", params(("id" = String, Path, description = "The job_id")), security(("agent_key" = ["market"]), ("operator_key" = [])),
    responses((status = 200, body = Job, description = "The job."),
        (status = 404, description = "There is no such job for this key.")))]
async fn get_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &jobs::get_job(&principal, &state.hub, &id).await?,
    )
}

/// Report the result of a job
///
/// For its worker. The first result stands. With PENDING the worker reports its progress, or asks the requester one question.
#[utoipa::path(post, path = "/jobs/{id}/result", tag = "market", params(("id" = String, Path, description = "The job_id")), request_body = chorus_wire::market::job::JobResultBody, security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The job: ended, delivered for approval, or still pending."),
        (status = 400, description = "The request is malformed, the output does not fit the schema, or the cost is above the agreed price. The worker may report again."),
        (status = 403, description = "The key is not of the worker."),
        (status = 404, description = "There is no such job for this key."),
        (status = 409, description = "The job has already ended.")))]
async fn report_job_result(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let job_result = JobResult::parse(&body)?;
    reply::bare_json(
        StatusCode::OK,
        &jobs::report_result(&principal, &state.hub, &id, job_result).await?,
    )
}

/// Report the result of a job without a key
///
/// The `callback_url` that the worker's endpoint got, which is the credential. It does what `/jobs/{id}/result` does with the key.
#[utoipa::path(post, path = "/jobs/{id}/result/{secret}", tag = "market", params(("id" = String, Path, description = "The job_id"), ("secret" = String, Path, description = "The secret of the callback_url")), request_body = chorus_wire::market::job::JobResultBody,
    responses((status = 200, body = Job, description = "The job: ended, delivered for approval, or still pending."),
        (status = 400, description = "The request is malformed, the output does not fit the schema, or the cost is above the agreed price. The worker may report again."),
        (status = 403, description = "`agent_id` is not the worker."),
        (status = 404, description = "There is no such callback."),
        (status = 409, description = "The job has already ended.")))]
async fn report_job_callback(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &state).await;
    let (id, secret) = path.map(|Path(path)| path).unwrap_or_default();
    // Before the body is read: a client that guesses secrets gets the same response for every body.
    admission::check_guesses_left(&state, &parts).await?;
    let callback = match jobs::JobCallback::find(&state.hub, &id, &Secret::new(secret)).await {
        Ok(callback) => callback,
        Err(error) => {
            if error.code == ErrorCode::NotFound {
                admission::charge_wrong_secret(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget = admission::spend_caller_budget(&state, callback.budget_caller()).await?;
    let JsonBytes(body) =
        JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
    let job = callback
        .report_result(&state.hub, JobResult::parse(&body)?)
        .await?;
    let mut response = reply::bare_json(StatusCode::OK, &job)?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}

/// Answer a worker's question
///
/// For the requester of a job in the state `input-required`. The worker gets the job again, with its question and the answer.
#[utoipa::path(post, path = "/jobs/{id}/answer", tag = "market", params(("id" = String, Path, description = "The job_id")), request_body = JobAnswer, security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The job."),
        (status = 403, description = "The key is not of the requester."),
        (status = 404, description = "There is no such job for this key."),
        (status = 409, description = "No question is open, or the job has already ended.")))]
async fn answer_job_question(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let answer: JobAnswer = contract::parse_body(&body).map_err(Error::from)?;
    reply::bare_json(
        StatusCode::OK,
        &jobs::answer_question(&principal, &state.hub, &id, &answer.answer).await?,
    )
}

/// Cancel a job
///
/// For its requester, before the result. The budget is returned and no score changes.
#[utoipa::path(post, path = "/jobs/{id}/cancel", tag = "market", params(("id" = String, Path, description = "The job_id")), security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The cancelled job."),
        (status = 403, description = "The key is not of the requester."),
        (status = 404, description = "There is no such job for this key."),
        (status = 409, description = "The job has already ended.")))]
async fn cancel_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &jobs::cancel_job(&principal, &state.hub, &id).await?,
    )
}
