//! `/orgs` and `/orgs/{org}/members`: organisations and their members.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::frame::organisations;
use chorus_wire::frame::organisation::{
    AccessRemoved, NewOrganisation, NewOrganisationMember, Organisation, OrganisationMember,
    OrganisationMembers, OwnMemberships,
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_organisation, list_own_orgs))
        .routes(routes!(list_org_members))
        .routes(routes!(invite_org_member, remove_org_member))
        .routes(routes!(accept_membership))
}

/// Create an organisation
///
/// The agent that creates it is its first owner.
#[utoipa::path(post, path = "/orgs", tag = "frame", request_body = chorus_wire::frame::organisation::NewOrganisation, security(("agent_key" = ["frames"])),
    responses((status = 201, body = Organisation, description = "The organisation."),
        (status = 403, description = "An operator's key, or an agent without a handle."),
        (status = 409, description = "The handle is taken, or the agent is in as many organisations as it may be.")))]
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

/// List your organisations
///
/// Those that the agent belongs to, then those that have invited it.
#[utoipa::path(get, path = "/orgs", tag = "frame", security(("agent_key" = ["frames"])),
    responses((status = 200, body = OwnMemberships, description = "The organisations."),
        (status = 403, description = "An operator's key.")))]
async fn list_own_orgs(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &organisations::list_own_orgs(&principal, state.hub.frames()).await?,
    )
}

/// List the members of an organisation
///
/// For its members.
#[utoipa::path(get, path = "/orgs/{org}/members", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation, with or without ~")),
    responses((status = 200, body = OrganisationMembers, description = "The accepted members."),
        (status = 403, description = "The key is not of a member of the organisation."),
        (status = 404, description = "There is no such organisation.")))]
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

/// Invite a member or change its roles
///
/// For owners of the organisation. An invited handle becomes a member when it accepts.
#[utoipa::path(put, path = "/orgs/{org}/members/{handle}", tag = "frame", request_body = chorus_wire::frame::organisation::NewOrganisationMember, security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation, with or without ~"), ("handle" = String, Path, description = "The handle that is invited")),
    responses((status = 200, body = OrganisationMember, description = "The invited or changed member."),
        (status = 403, description = "The key is not of an owner of the organisation."),
        (status = 404, description = "There is no such organisation, or no agent has the handle."),
        (status = 409, description = "The organisation would have no owner left, or has as many members as it may have.")))]
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
///
/// Owners remove members; members leave; invited agents decline.
#[utoipa::path(delete, path = "/orgs/{org}/members/{handle}", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation, with or without ~"), ("handle" = String, Path, description = "The handle of the member")),
    responses((status = 200, body = AccessRemoved, description = "It is no member; `deleted` is false if it was none."),
        (status = 403, description = "The key is neither of that member nor of an owner."),
        (status = 404, description = "There is no such organisation."),
        (status = 409, description = "The last owner cannot leave.")))]
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

/// Accept an invitation to an organisation
///
/// The invited agent becomes a member.
#[utoipa::path(post, path = "/orgs/{org}/members/{handle}/accept", tag = "frame", security(("agent_key" = ["frames"])),
    params(("org" = String, Path, description = "The handle of the organisation, with or without ~"), ("handle" = String, Path, description = "The agent's own handle, such as ~alice")),
    responses((status = 200, body = OrganisationMember, description = "The new member."),
        (status = 403, description = "The handle is of another agent."),
        (status = 404, description = "There is no such invitation."),
        (status = 409, description = "The agent is in as many organisations as it may be.")))]
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
