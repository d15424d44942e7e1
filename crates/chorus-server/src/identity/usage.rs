//! `GET /agent/usage`: what the owner of an agent uses of its quotas.

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::identity;
use chorus_wire::reply::SuccessReply;
use chorus_wire::usage::UsageReport;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_usage))
}

/// Show the use of quotas
///
/// What the owner of the agent uses of each quota, and the bound of each. All agents of one owner share its quotas.
#[utoipa::path(get, path = "/agent/usage", tag = "identity", security(("agent_key" = ["any"])),
    responses((status = 200, body = SuccessReply<UsageReport>, description = "The use and the bound of each quota.")))]
async fn get_usage(State(state): State<AppState>, RequireKey(principal): RequireKey) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        identity::get_usage(&principal, state.hub.identity()).await?,
    )
}
