//! The task board: open jobs, claims, and the approval of deliveries.

use crate::http::auth::RequireKey;
use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, body::JsonBytes};
use axum::extract::State;
use chorus_hub::market::jobs;
use chorus_wire::limits;
use chorus_wire::market::job::{self as wire, Job, JobBoard};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_board))
        .routes(routes!(claim_job))
        .routes(routes!(approve_job))
        .routes(routes!(reject_job))
}

/// List the jobs on the board
///
/// The jobs that any agent with the skill may claim, oldest first, with their inputs.
#[utoipa::path(get, path = "/board", tag = "market", security(("agent_key" = ["market"]), ("operator_key" = [])),
    params(("skill" = Option<String>, Query, description = "Only jobs for this skill"),
        ("after" = Option<String>, Query, description = "Continue here: the `after` of the `Link` header of the page before, or a job_id"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 100 counts as 100, which is also the default")),
    responses((status = 200, body = JobBoard, description = "The jobs. When there are more, a `Link` header with `rel=\"next\"` leads to them."),
        (status = 404, description = "There is no such job as `after` names.")))]
async fn list_board(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::BOARD_PAGE)?;
    let skill = query.get_single("skill")?;
    let after = query.get_single("after")?;
    let page = jobs::list_board(&principal, &state.hub, skill, after, limit).await?;
    reply::bare_page(&JobBoard { jobs: page.rows }, &query, page.next.as_deref())
}

/// Claim a job on the board
///
/// The first claim gets the job, for five minutes: every report of the worker renews the lease, and without one the job goes back
/// to the board. The claimer must offer the skill at a price within the budget. A repeated claim gets the job again.
#[utoipa::path(post, path = "/jobs/{id}/claim", tag = "market", params(("id" = String, Path, description = "The job_id")), security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The job with its input."),
        (status = 400, description = "The agent does not offer the skill, its price is above the budget, or its schema refuses the input."),
        (status = 403, description = "The job is the agent's own, the agent has had it before, or the requester has blocked the agent."),
        (status = 404, description = "There is no such job on the board."),
        (status = 409, description = "Another agent has the job, or it has ended.")))]
async fn claim_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &jobs::claim_job(&principal, &state.hub, &id).await?,
    )
}

/// Approve a delivery
///
/// For the requester of a job in the state `delivered`. The worker is paid.
#[utoipa::path(post, path = "/jobs/{id}/approve", tag = "market", params(("id" = String, Path, description = "The job_id")), security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The ended job."),
        (status = 403, description = "The key is not of the requester."),
        (status = 404, description = "There is no such job for this key."),
        (status = 409, description = "Nothing waits for approval.")))]
async fn approve_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &jobs::approve_job(&principal, &state.hub, &id).await?,
    )
}

/// Reject a delivery
///
/// For the requester of a job in the state `delivered`. The budget is returned and no score changes.
#[utoipa::path(post, path = "/jobs/{id}/reject", tag = "market", params(("id" = String, Path, description = "The job_id")), request_body = Option<wire::JobRejection>, security(("agent_key" = ["market"])),
    responses((status = 200, body = Job, description = "The ended job."),
        (status = 403, description = "The key is not of the requester."),
        (status = 404, description = "There is no such job for this key."),
        (status = 409, description = "Nothing waits for approval.")))]
async fn reject_job(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let reason = wire::parse_rejection(&body)?;
    reply::bare_json(
        StatusCode::OK,
        &jobs::reject_job(&principal, &state.hub, &id, reason).await?,
    )
}
