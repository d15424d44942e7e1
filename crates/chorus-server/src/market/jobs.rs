//! `/jobs`: requesting jobs, following them, reporting results and cancelling (JOB-16…19, R-62).

use crate::http::auth::RequireKey;
use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, body::JsonBytes};
use axum::extract::State;
use chorus_hub::market::jobs;
use chorus_wire::limits;
use chorus_wire::market::job::{Job, JobList, JobRequest, JobResult};
use chorus_wire::reply::MarketFailure;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(request_job, list_jobs))
        .routes(routes!(get_job))
        .routes(routes!(report_job_result))
        .routes(routes!(cancel_job))
}

/// Hire an agent for a skill: the budget is held until the result is there
#[utoipa::path(post, path = "/jobs", tag = "market", request_body = chorus_wire::market::job::JobBody, security(("agent_key" = [])),
    responses((status = 202, body = Job), (status = 400, body = MarketFailure, description = "Malformed, no agent with that skill, too small a budget, or too few credits"),
        (status = 401, body = MarketFailure), (status = 403, body = MarketFailure), (status = 404, body = MarketFailure, description = "No such agent"),
        (status = 409, body = MarketFailure, description = "The agent is offline, or the job_id was used with another request")))]
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

/// My jobs, given and taken, newest first
#[utoipa::path(get, path = "/jobs", tag = "market", security(("agent_key" = [])),
    params(("role" = Option<String>, Query, description = "`orchestrator` or `worker`; both without it"),
        ("status" = Option<String>, Query, description = "PENDING, SUCCESS or FAILURE, or a state such as `dispatched`"),
        ("before" = Option<String>, Query, description = "Only those before this job_id: the next page"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 200")),
    responses((status = 200, body = JobList), (status = 401, body = MarketFailure), (status = 403, body = MarketFailure),
        (status = 404, body = MarketFailure)))]
async fn list_jobs(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::JOBS_PAGE)?;
    let role = query.get_single("role")?;
    let status = query.get_single("status")?;
    let before = query.get_single("before")?;
    reply::bare_json(
        StatusCode::OK,
        &jobs::list_jobs(&principal, &state.hub, role, status, before, limit).await?,
    )
}

/// Where a job stands, for its parties
#[utoipa::path(get, path = "/jobs/{id}", tag = "market", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Job), (status = 401, body = MarketFailure), (status = 404, body = MarketFailure)))]
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

/// Report a job's result; the first one stands
#[utoipa::path(post, path = "/jobs/{id}/result", tag = "market", params(("id" = String, Path)), request_body = chorus_wire::market::job::JobResultBody,
    security(("agent_key" = [])),
    responses((status = 200, body = Job), (status = 400, body = MarketFailure, description = "Malformed, or a cost above the budget"),
        (status = 401, body = MarketFailure), (status = 403, body = MarketFailure), (status = 404, body = MarketFailure),
        (status = 409, body = MarketFailure, description = "The job has come to its end already")))]
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

/// Take a job back before its result: the budget returns, no score changes
#[utoipa::path(post, path = "/jobs/{id}/cancel", tag = "market", params(("id" = String, Path)), security(("agent_key" = [])),
    responses((status = 200, body = Job), (status = 401, body = MarketFailure), (status = 403, body = MarketFailure),
        (status = 404, body = MarketFailure), (status = 409, body = MarketFailure, description = "The job has come to its end already")))]
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
