//! `/accounts/{owner}`: an owner's balance, and credits issued by operators (R-64, lesson 14).

use crate::http::auth::{RequireKey, RequireOperator};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, body::JsonBytes, path_params::PathParam};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::transfer::{CreditIssue, OwnerAccount};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_account))
        .routes(routes!(issue_credits))
}

/// Get an account
///
/// The credits that an owner can spend, and those on hold for its jobs.
#[utoipa::path(get, path = "/accounts/{owner}", tag = "market", params(("owner" = String, Path, description = "The owner_id")), security(("agent_key" = ["market"]), ("operator_key" = [])),
    responses((status = 200, body = OwnerAccount, description = "The account."),
        (status = 403, description = "The key is not of that owner."),
        (status = 404, description = "There is no such owner.")))]
async fn get_account(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(owner): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &market::get_account(&principal, &state.hub, Some(&owner)).await?,
    )
}

/// Issue credits to an owner
///
/// Creates new credits.
#[utoipa::path(post, path = "/accounts/{owner}/credit", tag = "market", params(("owner" = String, Path, description = "The owner_id")), request_body = CreditIssue, security(("operator_key" = [])),
    responses((status = 200, body = OwnerAccount, description = "The account after it."),
        (status = 404, description = "There is no such owner.")))]
async fn issue_credits(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
    PathParam(owner): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let issue = CreditIssue::parse(&body)?;
    reply::bare_json(
        StatusCode::OK,
        &market::issue_credits(&principal, &state.hub, &owner, issue).await?,
    )
}
