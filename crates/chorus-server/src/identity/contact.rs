//! `/agent/blocks`, `/agent/contacts` and `/agent/settings`: who may contact an agent.

use crate::http::path_params::PathParam;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::lifecycle::contact;
use chorus_wire::contact::{AgentContact, AgentSettings, BlockedName, NameRemoved, SettingsChange};
use chorus_wire::reply::SuccessReply;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_blocks))
        .routes(routes!(put_block, delete_block))
        .routes(routes!(list_contacts))
        .routes(routes!(put_contact, delete_contact))
        .routes(routes!(get_settings, update_settings))
}

/// List the names that I block
///
/// Agents, and hosts as `@host`.
#[utoipa::path(get, path = "/agent/blocks", tag = "envelope", security(("agent_key" = ["read"])),
    responses((status = 200, body = SuccessReply<Vec<BlockedName>>, description = "The names, in their order."),
        (status = 403, description = "The key is an operator's.")))]
async fn list_blocks(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    let blocks = contact::list_blocks(&principal, &state.hub).await?;
    reply::wrapped_json(&state, StatusCode::OK, blocks)
}

/// Block an agent or a host
///
/// Its messages, invitations, jobs and frames are refused with `ERR_BLOCKED`. `@host` blocks every agent under that host. A
/// repetition changes nothing.
#[utoipa::path(put, path = "/agent/blocks/{name}", tag = "envelope", security(("agent_key" = ["admin"])),
    params(("name" = String, Path, description = "Any name of an agent, or `@` and a host")),
    responses((status = 200, body = SuccessReply<BlockedName>, description = "It is blocked."),
        (status = 403, description = "The key is an operator's, or the agent blocks as many names as it may.")))]
async fn put_block(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
) -> ApiResult {
    let frames = state.hub.frames();
    let blocked = contact::put_block(&principal, &state.hub, frames, &name).await?;
    reply::wrapped_json(&state, StatusCode::OK, blocked)
}

/// End a block
///
/// Without a block of that name it has no effect.
#[utoipa::path(delete, path = "/agent/blocks/{name}", tag = "envelope", security(("agent_key" = ["admin"])),
    params(("name" = String, Path, description = "Any name of an agent, or `@` and a host")),
    responses((status = 200, body = SuccessReply<NameRemoved>, description = "It is not blocked."),
        (status = 403, description = "The key is an operator's.")))]
async fn delete_block(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
) -> ApiResult {
    let frames = state.hub.frames();
    let removed = contact::delete_block(&principal, &state.hub, frames, &name).await?;
    reply::wrapped_json(&state, StatusCode::OK, removed)
}

/// List the contacts that I added
///
/// Further contacts are the agents that I have written to, and those with which I share an owner, an organisation or a channel.
#[utoipa::path(get, path = "/agent/contacts", tag = "envelope", security(("agent_key" = ["read"])),
    responses((status = 200, body = SuccessReply<Vec<AgentContact>>, description = "The contacts, in the order of their names."),
        (status = 403, description = "The key is an operator's.")))]
async fn list_contacts(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    let contacts = contact::list_contacts(&principal, &state.hub).await?;
    reply::wrapped_json(&state, StatusCode::OK, contacts)
}

/// Add a contact
///
/// A contact may write to me although my `accept_from` is `contacts`. A repetition changes nothing.
#[utoipa::path(put, path = "/agent/contacts/{name}", tag = "envelope", security(("agent_key" = ["admin"])),
    params(("name" = String, Path, description = "Any name of an agent")),
    responses((status = 200, body = SuccessReply<AgentContact>, description = "It is a contact."),
        (status = 403, description = "The key is an operator's, or the agent has added as many contacts as it may."),
        (status = 404, description = "No agent of that name is registered here.")))]
async fn put_contact(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
) -> ApiResult {
    let added = contact::put_contact(&principal, &state.hub, &name).await?;
    reply::wrapped_json(&state, StatusCode::OK, added)
}

/// Remove a contact
///
/// Without such a contact it has no effect.
#[utoipa::path(delete, path = "/agent/contacts/{name}", tag = "envelope", security(("agent_key" = ["admin"])),
    params(("name" = String, Path, description = "Any name of an agent")),
    responses((status = 200, body = SuccessReply<NameRemoved>, description = "It is not among the added contacts."),
        (status = 403, description = "The key is an operator's.")))]
async fn delete_contact(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(name): PathParam,
) -> ApiResult {
    let removed = contact::delete_contact(&principal, &state.hub, &name).await?;
    reply::wrapped_json(&state, StatusCode::OK, removed)
}

/// Get my settings
///
/// From whom the agent takes messages, invitations, jobs and frames.
#[utoipa::path(get, path = "/agent/settings", tag = "envelope", security(("agent_key" = ["read"])),
    responses((status = 200, body = SuccessReply<AgentSettings>, description = "The settings."),
        (status = 403, description = "The key is an operator's.")))]
async fn get_settings(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    let settings = contact::get_settings(&principal, &state.hub).await?;
    reply::wrapped_json(&state, StatusCode::OK, settings)
}

/// Change my settings
///
/// `accept_from` says from whom the agent takes messages, invitations, jobs and frames.
#[utoipa::path(patch, path = "/agent/settings", tag = "envelope", security(("agent_key" = ["admin"])), request_body = chorus_wire::contact::SettingsChange,
    responses((status = 200, body = SuccessReply<AgentSettings>, description = "The changed settings."),
        (status = 403, description = "The key is an operator's.")))]
async fn update_settings(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let change = SettingsChange::parse(&body)?;
    let frames = state.hub.frames();
    let settings = contact::update_settings(&principal, &state.hub, frames, change).await?;
    reply::wrapped_json(&state, StatusCode::OK, settings)
}
