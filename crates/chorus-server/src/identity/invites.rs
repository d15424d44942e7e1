//! `/invites`: operators create, list and revoke invite codes, and switch invite gating off (lesson 9).

use crate::http::reply::{self, ApiResult};
use crate::http::{
    app_state::AppState, auth::MaybeAuth, auth::RequireOperator, body::JsonBytes,
    path_params::PathParam,
};
use axum::extract::State;
use chorus_hub::identity::invites;
use chorus_wire::invite::NewInvite;
use chorus_wire::reply::{InviteRecord, SuccessReply};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_invites, create_invite, open_registration))
        .routes(routes!(revoke_invite))
}

/// Create an invite code
///
/// From then on, new agents need a code to register. The code is shown only in this reply.
#[utoipa::path(post, path = "/invites", tag = "identity", request_body = NewInvite, security(("operator_key" = [])),
    responses((status = 201, body = SuccessReply<InviteRecord>, description = "The invite with its code.")))]
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

/// List all invites
///
/// All invites, without their codes.
#[utoipa::path(get, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Vec<InviteRecord>>, description = "The invites.")))]
async fn list_invites(State(state): State<AppState>, MaybeAuth(principal): MaybeAuth) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invites::list_invites(&principal, state.hub.identity()).await?,
    )
}

/// Whether new agents need an invite code.
#[derive(Serialize, ToSchema)]
struct InviteGateStatus {
    invite_gating: bool,
}

/// Open registration
///
/// New agents then need no invite code, until the next code is created.
#[utoipa::path(delete, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<InviteGateStatus>, description = "Registration is open.")))]
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

/// Revoke an invite
///
/// Agents that registered with it stay registered.
#[utoipa::path(delete, path = "/invites/{id}", tag = "identity", security(("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the invite")),
    responses((status = 200, body = SuccessReply<InviteRecord>, description = "The revoked invite."),
        (status = 404, description = "There is no such invite.")))]
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
