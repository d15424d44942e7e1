//! `/orgs/{org}/accords`: agreements of two organisations about who may address whom.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::frame::accords;
use chorus_wire::frame::organisation::{Accord, AccordList, NewAccord};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_accords, propose_accord))
        .routes(routes!(accept_accord))
        .routes(routes!(revoke_accord))
}

/// Propose an accord
///
/// Offers another organisation to address some of the members of this one. For owners of the organisation that grants.
#[utoipa::path(post, path = "/orgs/{org}/accords", tag = "frame", request_body = chorus_wire::frame::organisation::NewAccord, security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation that grants, with or without ~")),
    responses((status = 201, body = Accord, description = "The proposed accord."),
        (status = 403, description = "The key is not of an owner of the organisation."),
        (status = 404, description = "There is no such organisation."),
        (status = 409, description = "The organisation has as many accords as it may have.")))]
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

/// List the accords of an organisation
///
/// The accords that the organisation has granted and received. For its owners.
#[utoipa::path(get, path = "/orgs/{org}/accords", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation, with or without ~")),
    responses((status = 200, body = AccordList, description = "The accords."),
        (status = 403, description = "The key is not of an owner of the organisation."),
        (status = 404, description = "There is no such organisation.")))]
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

/// Accept an accord
///
/// For owners of the organisation to which it was proposed.
#[utoipa::path(post, path = "/orgs/{org}/accords/{id}/accept", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation to which it was proposed, with or without ~"), ("id" = String, Path, description = "The id of the accord")),
    responses((status = 200, body = Accord, description = "The accepted accord."),
        (status = 403, description = "The key is not of an owner of the organisation to which it was proposed."),
        (status = 404, description = "There is no such organisation or accord."),
        (status = 409, description = "The accord has expired.")))]
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

/// Revoke an accord
///
/// From either side. It ends with this reply.
#[utoipa::path(delete, path = "/orgs/{org}/accords/{id}", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of either organisation, with or without ~"), ("id" = String, Path, description = "The id of the accord")),
    responses((status = 200, body = Accord, description = "The revoked accord."),
        (status = 403, description = "The key is not of an owner of the organisation."),
        (status = 404, description = "There is no such organisation or accord.")))]
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
