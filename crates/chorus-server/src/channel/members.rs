//! `/channels/{id}/members`: adding, listing and removing members (CHN-01…03, R-78).

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::channel::{member_list, members};
use chorus_wire::channel::channels::{ChannelMember, ChannelMemberRemoved, NewChannelMember};
use chorus_wire::reply::{FailureReply, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(add_channel_member, list_members))
        .routes(routes!(remove_channel_member))
}

/// Let an agent in, by its connection string or its name; for the owner
#[utoipa::path(post, path = "/channels/{id}/members", tag = "channel", request_body = chorus_wire::channel::channels::MemberInvitation, params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<ChannelMember>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply), (status = 409, body = FailureReply, description = "The name is taken in this channel")))]
async fn add_channel_member(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let new_member = NewChannelMember::parse(&body)?;
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        members::add_member(&principal, &state.hub, &id, new_member).await?,
    )
}

/// Who is in a channel, and what each is doing just now
#[utoipa::path(get, path = "/channels/{id}/members", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Vec<ChannelMember>>), (status = 401, body = FailureReply), (status = 404, body = FailureReply)))]
async fn list_members(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        member_list::list_members(&principal, &state.hub, &id).await?,
    )
}

/// Remove a member, or leave; its tokens are dead at once
#[utoipa::path(delete, path = "/channels/{id}/members/{name}", tag = "channel",
    params(("id" = String, Path), ("name" = String, Path)), security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelMemberRemoved>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply), (status = 409, body = FailureReply, description = "The owner stays")))]
async fn remove_channel_member(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        members::remove_member(&principal, &state.hub, &id, &name).await?,
    )
}
