//! `/handles/{handle}/grants`: which other handles may address this one.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::frame::grants;
use chorus_wire::frame::organisation::{AccessRemoved, HandleGrant, HandleGrants};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_grants))
        .routes(routes!(grant_access, withdraw_grant))
}

/// List my grants
///
/// The handles that may address this one.
#[utoipa::path(get, path = "/handles/{handle}/grants", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, such as ~alice")),
    responses((status = 200, body = HandleGrants, description = "The grants."),
        (status = 403, description = "The handle is of another agent.")))]
async fn list_grants(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(handle): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &grants::list_grants(&principal, state.hub.frames(), &handle).await?,
    )
}

/// Grant access to another handle
///
/// The other handle may then address this one and see its live sessions. Granting again changes nothing.
#[utoipa::path(put, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, such as ~alice"), ("grantee" = String, Path, description = "The handle that gets access")),
    responses((status = 200, body = HandleGrant, description = "The grant."),
        (status = 403, description = "The handle is of another agent."),
        (status = 404, description = "No agent has the handle that shall get access."),
        (status = 409, description = "Both handles are the same, or there are as many grants as there may be.")))]
async fn grant_access(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(handle, grantee): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &grants::put_grant(&principal, state.hub.frames(), &handle, &grantee).await?,
    )
}

/// Withdraw a grant
///
/// The other handle is refused from this reply on.
#[utoipa::path(delete, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, such as ~alice"), ("grantee" = String, Path, description = "The handle that loses access")),
    responses((status = 200, body = AccessRemoved, description = "The grant is gone; `deleted` is false if there was none."),
        (status = 403, description = "The handle is of another agent.")))]
async fn withdraw_grant(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(handle, grantee): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &grants::withdraw_grant(&principal, state.hub.frames(), &handle, &grantee).await?,
    )
}
