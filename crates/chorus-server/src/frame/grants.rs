//! `/handles/{handle}/grants`: which other handles may address this one.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::frame::grants;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::organisation::{AccessRemoved, HandleGrant, HandleGrants};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_grants))
        .routes(routes!(grant_access, withdraw_grant))
}

/// Whom I let address me
#[utoipa::path(get, path = "/handles/{handle}/grants", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own")),
    responses((status = 200, body = HandleGrants), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure)))]
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

/// Let another handle address me, and see which of my sessions are live
#[utoipa::path(put, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own"), ("grantee" = String, Path, description = "Whom I let")),
    responses((status = 200, body = HandleGrant), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure, description = "No agent has that handle"),
        (status = 409, body = FrameFailure, description = "It is my own handle, or I have granted as many as I may")))]
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

/// Withdraw a grant; from this answer on the other is refused
#[utoipa::path(delete, path = "/handles/{handle}/grants/{grantee}", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own"), ("grantee" = String, Path, description = "Whom I no longer let")),
    responses((status = 200, body = AccessRemoved), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure)))]
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
