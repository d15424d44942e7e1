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
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(request_job, list_jobs))
        .routes(routes!(get_job))
        .routes(routes!(report_job_result))
        .routes(routes!(cancel_job))
}

/// The document's job request; agent_id and deadline_ms are ours.
#[derive(ToSchema)]
#[schema(example = json!({"job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "skill_name": "analyze_text",
    "input_data": {"text": "Revenue for Q3 was $42,000..."}, "budget": 0.15, "currency": "chorus_credits_v1",
    "callback_url": "https://orchestrator.example/results", "timestamp_utc": "2026-02-11T14:15:09Z"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/market/job.rs reads it"
)]
struct JobRequestBody {
    /// The same id with the same body is the same job; without one the hub makes one.
    job_id: Option<String>,
    orchestrator_id: Option<String>,
    /// Who shall do it; without it the best match for the skill within the budget.
    agent_id: Option<String>,
    skill_name: String,
    input_data: Option<serde_json::Value>,
    budget: f64,
    currency: Option<String>,
    callback_url: Option<String>,
    /// 600000 without it.
    deadline_ms: Option<u64>,
    timestamp_utc: Option<String>,
}

/// The document's job result.
#[derive(ToSchema)]
#[schema(example = json!({"status": "SUCCESS", "output_data": {"entities": []}, "execution_cost": 0.10,
    "execution_time_ms": 1250, "error_message": null}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/market/job.rs reads it"
)]
struct JobResultBody {
    job_id: Option<String>,
    agent_id: Option<String>,
    /// SUCCESS or FAILURE.
    status: String,
    output_data: Option<serde_json::Value>,
    /// At most the budget; what was offered without it.
    execution_cost: Option<f64>,
    execution_time_ms: Option<u64>,
    error_code: Option<String>,
    error_message: Option<String>,
    timestamp_utc: Option<String>,
}

/// Hire an agent for a skill: the budget is held until the result is there
#[utoipa::path(post, path = "/jobs", tag = "market", request_body = JobRequestBody, security(("agent_key" = [])),
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
#[utoipa::path(post, path = "/jobs/{id}/result", tag = "market", params(("id" = String, Path)), request_body = JobResultBody,
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
