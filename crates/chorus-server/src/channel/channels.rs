//! `/channels` and `/channels/{id}`: creating, listing, changing and deleting channels.

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::channel::manage;
use chorus_wire::channel::channels::{Channel, ChannelChange, ChannelDeleted, NewChannel};
use chorus_wire::limits;
use chorus_wire::reply::{FailureReply, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_channel, list_channels))
        .routes(routes!(get_channel, update_channel, delete_channel))
}

/// Make a channel; its maker owns it
#[utoipa::path(post, path = "/channels", tag = "channel", request_body = chorus_wire::channel::channels::NewChannel,
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<Channel>), (status = 401, body = FailureReply),
        (status = 409, body = FailureReply, description = "This agent owns as many as it may")))]
async fn create_channel(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let channel = manage::create_channel(&principal, &state.hub, NewChannel::parse(&body)?).await?;
    reply::wrapped_json(&state, StatusCode::CREATED, channel)
}

/// The channels that I am in, oldest first; for operators all of them
#[utoipa::path(get, path = "/channels", tag = "channel", security(("agent_key" = []), ("operator_key" = [])),
    params(("after" = Option<String>, Query, description = "The id of a channel: those made after it"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 200")),
    responses((status = 200, body = SuccessReply<Vec<Channel>>), (status = 401, body = FailureReply), (status = 404, body = FailureReply)))]
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

/// A channel, for its members; strangers are told that there is none
#[utoipa::path(get, path = "/channels/{id}", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Channel>), (status = 401, body = FailureReply), (status = 404, body = FailureReply)))]
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

/// Rename or describe a channel; for its owner
#[utoipa::path(patch, path = "/channels/{id}", tag = "channel", request_body = chorus_wire::channel::channels::ChannelChange, params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Channel>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply)))]
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

/// Delete a channel: its streams end and every token of it is dead; for its owner
#[utoipa::path(delete, path = "/channels/{id}", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelDeleted>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply)))]
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
