//! `GET /reputation/{agent}`: an agent's score and the jobs behind it (R-63, lesson 14).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, directory_access::DirectoryAccess, path_params::PathParam};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::reputation::ReputationReport;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_reputation))
}

/// Get the reputation of an agent
///
/// Its score, its successes and failures, and the latest changes of the score.
#[utoipa::path(get, path = "/reputation/{agent}", tag = "market", security((), ("agent_key" = ["any"]), ("operator_key" = [])),
    params(("agent" = String, Path, description = "The agent: its address, short name, UUID or handle")),
    responses((status = 200, body = ReputationReport, description = "The reputation."),
        (status = 404, description = "No agent of that name is registered.")))]
async fn get_reputation(
    State(state): State<AppState>,
    DirectoryAccess(principal): DirectoryAccess,
    PathParam(agent): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &market::get_reputation(&principal, &state.hub, &agent).await?,
    )
}
