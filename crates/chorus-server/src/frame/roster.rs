//! `GET /handles/{handle}/roster`: the live sessions of a handle (FRM-109, R-50).

use crate::http::path_params::PathParam;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::frame;
use chorus_wire::frame::SessionRoster;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_roster))
}

/// List the live sessions of a handle
///
/// For the handle itself and for those that it lets address it.
#[utoipa::path(get, path = "/handles/{handle}/roster", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, or one that granted it access")),
    responses((status = 200, body = SessionRoster, description = "The sessions."),
        (status = 403, description = "The handle has not granted access to this agent.")))]
async fn get_roster(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(handle): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &frame::list_roster(&principal, state.hub.frames(), &handle).await?,
    )
}
