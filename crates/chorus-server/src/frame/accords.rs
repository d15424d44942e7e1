//! `/orgs/{org}/accords`: agreements of two organisations about who may address whom.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::frame::accords;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::organisation::{Accord, AccordList, NewAccord};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_accords, propose_accord))
        .routes(routes!(accept_accord))
        .routes(routes!(revoke_accord))
}

/// Propose an accord to another organisation; for owners of the granting one
#[utoipa::path(post, path = "/orgs/{org}/accords", tag = "frame", request_body = chorus_wire::frame::organisation::NewAccord, security(("agent_key" = [])),
    params(("org" = String, Path, description = "The one that grants, with or without ~")),
    responses((status = 201, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure)))]
async fn propose_accord(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(org): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let new_accord = NewAccord::parse(&body, state.hub.clock().now())?;
    reply::bare_json(
        StatusCode::CREATED,
        &accords::propose_accord(&principal, state.hub.frames(), &org, new_accord).await?,
    )
}

/// What an organisation has granted and was granted; for its owners
#[utoipa::path(get, path = "/orgs/{org}/accords", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~")),
    responses((status = 200, body = AccordList), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn list_accords(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(org): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &accords::list_accords(&principal, state.hub.frames(), &org).await?,
    )
}

/// Accept what another organisation proposed; for owners of the one it was offered to
#[utoipa::path(post, path = "/orgs/{org}/accords/{id}/accept", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "The one that was offered it"), ("id" = String, Path)),
    responses((status = 200, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "Its time is over")))]
async fn accept_accord(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(org, id): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &accords::accept_accord(&principal, state.hub.frames(), &org, &id).await?,
    )
}

/// End an accord, from either side; it is dead with this answer
#[utoipa::path(delete, path = "/orgs/{org}/accords/{id}", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "Either side"), ("id" = String, Path)),
    responses((status = 200, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn revoke_accord(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(org, id): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &accords::revoke_accord(&principal, state.hub.frames(), &org, &id).await?,
    )
}
