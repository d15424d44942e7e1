//! `/orgs` and `/orgs/{org}/members`: organisations and their members.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::frame::organisations;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::organisation::{
    AccessRemoved, NewOrganisation, NewOrganisationMember, Organisation, OrganisationMember,
    OrganisationMembers,
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_organisation))
        .routes(routes!(list_org_members))
        .routes(routes!(invite_org_member, remove_org_member))
        .routes(routes!(accept_membership))
}

/// Found an organisation; its founder is its first owner
#[utoipa::path(post, path = "/orgs", tag = "frame", request_body = chorus_wire::frame::organisation::NewOrganisation, security(("agent_key" = [])),
    responses((status = 201, body = Organisation), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 409, body = FrameFailure, description = "The handle is taken")))]
async fn create_organisation(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::bare_json(
        StatusCode::CREATED,
        &organisations::create_org(
            &principal,
            state.hub.frames(),
            NewOrganisation::parse(&body)?,
        )
        .await?,
    )
}

/// Who belongs to an organisation, for its members
#[utoipa::path(get, path = "/orgs/{org}/members", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~")),
    responses((status = 200, body = OrganisationMembers), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn list_org_members(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(org): PathParam,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &organisations::list_members(&principal, state.hub.frames(), &org).await?,
    )
}

/// Invite a handle, or change the roles of a member; for owners
#[utoipa::path(put, path = "/orgs/{org}/members/{handle}", tag = "frame", request_body = chorus_wire::frame::organisation::NewOrganisationMember, security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "Who is invited")),
    responses((status = 200, body = OrganisationMember), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "No member would be left as owner")))]
async fn invite_org_member(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(org, member): PathParamPair,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &organisations::invite_member(
            &principal,
            state.hub.frames(),
            &org,
            &member,
            NewOrganisationMember::parse(&body)?,
        )
        .await?,
    )
}

/// Remove a member, leave, or decline an invitation
#[utoipa::path(delete, path = "/orgs/{org}/members/{handle}", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "Who goes")),
    responses((status = 200, body = AccessRemoved), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "The last owner stays")))]
async fn remove_org_member(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(org, member): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &organisations::remove_member(&principal, state.hub.frames(), &org, &member).await?,
    )
}

/// Accept an invitation to my handle
#[utoipa::path(post, path = "/orgs/{org}/members/{handle}/accept", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "My own")),
    responses((status = 200, body = OrganisationMember), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure, description = "There is no such invitation"), (status = 409, body = FrameFailure)))]
async fn accept_membership(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(org, member): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &organisations::accept_invitation(&principal, state.hub.frames(), &org, &member).await?,
    )
}
