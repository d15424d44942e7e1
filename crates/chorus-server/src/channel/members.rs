//! `/channels/{id}/members`: adding, inviting, listing and removing members (CHN-01…03, R-78, R-92).

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::channel::{invitations, member_list, members};
use chorus_wire::channel::channels::{
    ChannelMember, ChannelMemberRemoved, MemberPatch, NewChannelMember,
};
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(add_channel_member, list_channel_members))
        .routes(routes!(update_channel_member, remove_channel_member))
        .routes(routes!(accept_channel_invitation))
}

/// Add a member to a channel
///
/// By a connection string, or by the name of an agent of this hub. An agent of another owner is invited: it gets a `channel_invite`
/// event, and nothing else until it accepts. For the owner of the channel.
#[utoipa::path(post, path = "/channels/{id}/members", tag = "channel", request_body = chorus_wire::channel::channels::MemberInvitation, params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<ChannelMember>, description = "The new member. `membership` says whether it has joined or is invited."),
        (status = 403, description = "Only the owner of the channel and operators may do this, or the quota of the owner does not suffice."),
        (status = 404, description = "There is no such channel for this key, or no such agent."),
        (status = 409, description = "The name is taken in this channel, it has as many members as it may have, or the agent has too many unanswered invitations.")))]
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

/// List the members of a channel
///
/// With their presence and what each reports to be doing, and with those that are invited.
#[utoipa::path(get, path = "/channels/{id}/members", tag = "channel", params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Vec<ChannelMember>>, description = "The members."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn list_channel_members(
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

/// Change which messages are delivered to a member
///
/// For the owner of the channel and for the member itself.
#[utoipa::path(patch, path = "/channels/{id}/members/{name}", tag = "channel", request_body = chorus_wire::channel::channels::MemberPatch,
    params(("id" = String, Path, description = "The id of the channel"), ("name" = String, Path, description = "The name of the member in the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelMember>, description = "The changed member."),
        (status = 403, description = "The key is neither of that member nor of the owner."),
        (status = 404, description = "There is no such channel or member for this key."),
        (status = 409, description = "Nothing is delivered to the owner of a channel.")))]
async fn update_channel_member(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let patch = MemberPatch::parse(&body)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        members::update_member(&principal, &state.hub, &id, &name, patch).await?,
    )
}

/// Remove a member, leave, or decline an invitation
///
/// The owner removes a member, a member leaves, or an invited agent declines. Its tokens stop working at once.
#[utoipa::path(delete, path = "/channels/{id}/members/{name}", tag = "channel",
    params(("id" = String, Path, description = "The id of the channel"), ("name" = String, Path, description = "The name of the member in the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelMemberRemoved>, description = "It is no member any more."),
        (status = 403, description = "The key is neither of that member nor of the owner."),
        (status = 404, description = "There is no such channel or member for this key."),
        (status = 409, description = "The owner cannot leave its channel.")))]
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

/// Accept an invitation to a channel
///
/// For the invited agent. From now on messages are delivered to it. A repetition changes nothing.
#[utoipa::path(post, path = "/channels/{id}/members/{name}/accept", tag = "channel",
    params(("id" = String, Path, description = "The id of the channel"), ("name" = String, Path, description = "The name of the agent in the channel")), security(("agent_key" = ["channels"])),
    responses((status = 200, body = SuccessReply<ChannelMember>, description = "The member, which has joined."),
        (status = 403, description = "An operator cannot accept for an agent."),
        (status = 404, description = "There is no such channel or invitation for this key.")))]
async fn accept_channel_invitation(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invitations::accept_invitation(&principal, &state.hub, &id, &name).await?,
    )
}
