//! `/invites`: operators create, list and revoke invite codes, and switch invite gating off (lesson 9).

use crate::http::reply::{self, ApiResult};
use crate::http::{
    app_state::AppState, auth::MaybeAuth, auth::RequireOperator, body::JsonBytes,
    path_params::PathParam,
};
use axum::extract::State;
use chorus_hub::identity::invites;
use chorus_wire::invite::NewInvite;
use chorus_wire::reply::{FailureReply, InviteRecord, SuccessReply};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_invites, create_invite, open_registration))
        .routes(routes!(revoke_invite))
}

/// Make an invite code; it is shown this once
#[utoipa::path(post, path = "/invites", tag = "identity", request_body = NewInvite, security(("operator_key" = [])),
    responses((status = 201, body = SuccessReply<InviteRecord>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn create_invite(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        invites::create_invite(&principal, state.hub.identity(), NewInvite::parse(&body)?).await?,
    )
}

/// All invites, without their codes
#[utoipa::path(get, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Vec<InviteRecord>>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn list_invites(State(state): State<AppState>, MaybeAuth(principal): MaybeAuth) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invites::list_invites(&principal, state.hub.identity()).await?,
    )
}

/// Whether a hub asks for codes.
#[derive(Serialize, ToSchema)]
struct InviteGateStatus {
    invite_gating: bool,
}

/// Open the hub to registrations without a code; it closes again with the next code that is made
#[utoipa::path(delete, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<InviteGateStatus>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn open_registration(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
) -> ApiResult {
    invites::disable_invite_gating(&principal, state.hub.identity()).await?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        InviteGateStatus {
            invite_gating: false,
        },
    )
}

/// Revoke an invite; who came in with it stays
#[utoipa::path(delete, path = "/invites/{id}", tag = "identity", security(("operator_key" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = SuccessReply<InviteRecord>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply)))]
async fn revoke_invite(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invites::revoke_invite(&principal, state.hub.identity(), &id).await?,
    )
}
