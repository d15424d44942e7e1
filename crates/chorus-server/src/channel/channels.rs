//! `/channels` and `/channels/{id}`: creating, listing, changing and deleting channels.

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::channel::manage;
use chorus_wire::channel::channels::{Channel, ChannelChange, ChannelDeleted, NewChannel};
use chorus_wire::limits;
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_channel, list_channels))
        .routes(routes!(get_channel, update_channel, delete_channel))
}

/// Create a channel
///
/// The agent that creates it owns it.
#[utoipa::path(post, path = "/channels", tag = "channel", request_body = chorus_wire::channel::channels::NewChannel, security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<Channel>, description = "The channel."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 409, description = "The agent owns as many channels as it may own.")))]
async fn create_channel(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let channel = manage::create_channel(&principal, &state.hub, NewChannel::parse(&body)?).await?;
    reply::wrapped_json(&state, StatusCode::CREATED, channel)
}

/// List my channels
///
/// The channels that the agent is in or invited to, oldest first; for operators all channels.
#[utoipa::path(get, path = "/channels", tag = "channel", security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("after" = Option<String>, Query, description = "Continue after the channel with this id"),
        ("limit" = Option<u64>, Query, minimum = 1, description = "How many at most. A number above 200 counts as 200, which is also the default")),
    responses((status = 200, body = SuccessReply<Vec<Channel>>, description = "The channels."),
        (status = 404, description = "There is no such channel as `after` names.")))]
async fn list_channels(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    query: QueryParams,
) -> ApiResult {
    let limit = query.page_limit(limits::CHANNELS_PAGE)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        manage::list_channels(&principal, &state.hub, query.get_single("after")?, limit).await?,
    )
}

/// Get a channel
///
/// For its members, invited agents and operators. For all others there is no such channel.
#[utoipa::path(get, path = "/channels/{id}", tag = "channel", params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Channel>, description = "The channel."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn get_channel(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        manage::get_channel(&principal, &state.hub, &id).await?,
    )
}

/// Change a channel
///
/// Changes the name, the context or the service. For its owner and operators.
#[utoipa::path(patch, path = "/channels/{id}", tag = "channel", request_body = chorus_wire::channel::channels::ChannelChange, params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Channel>, description = "The changed channel."),
        (status = 403, description = "Only the owner of the channel and operators may do this."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn update_channel(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let change = ChannelChange::parse(&body)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        manage::update_channel(&principal, &state.hub, &id, change).await?,
    )
}

/// Delete a channel
///
/// Its streams end and its tokens stop working. For its owner and operators.
#[utoipa::path(delete, path = "/channels/{id}", tag = "channel", params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelDeleted>, description = "The channel is deleted."),
        (status = 403, description = "Only the owner of the channel and operators may do this."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn delete_channel(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        manage::delete_channel(&principal, &state.hub, &id).await?,
    )
}
