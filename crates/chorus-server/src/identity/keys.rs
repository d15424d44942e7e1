//! `/agent/keys`: the further keys of an agent, and the rotation of its registration's key.

use crate::http::auth::{self, AuthResult, RequireKey};
use crate::http::idempotency::IdempotencyHeader;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, body::JsonBytes, path_params::PathParam};
use axum::extract::State;
use chorus_hub::lifecycle;
use chorus_wire::agent_key::{
    AgentKeyRecord, AgentKeyRevoked, KeyRotation, NewAgentKey, RotatedKey,
};
use chorus_wire::reply::SuccessReply;
use http::{HeaderMap, StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_keys, create_key))
        .routes(routes!(revoke_key))
        .routes(routes!(rotate_key))
}

/// Create a further key
///
/// A key of the agent with some scopes, and an end if `expires_in_s` is given. It is shown only in this reply. An agent has
/// at most 32.
#[utoipa::path(post, path = "/agent/keys", tag = "identity", request_body = NewAgentKey, security(("agent_key" = ["admin"])),
    responses((status = 201, body = SuccessReply<AgentKeyRecord>, description = "The key. `key` is shown only here.")))]
async fn create_key(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        lifecycle::create_key(&principal, &state.hub, NewAgentKey::parse(&body)?).await?,
    )
}

/// List the further keys
///
/// Without the keys themselves. `last_used` is the day of the last use.
#[utoipa::path(get, path = "/agent/keys", tag = "identity", security(("agent_key" = ["admin"])),
    responses((status = 200, body = SuccessReply<Vec<AgentKeyRecord>>, description = "The keys, oldest first.")))]
async fn list_keys(State(state): State<AppState>, RequireKey(principal): RequireKey) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::list_keys(&principal, &state.hub).await?,
    )
}

/// End a further key
///
/// What was made with it ends with it: streams, session tokens, standing callbacks, the connection string and, if it could
/// read, the callbacks and tool tokens of the agent's deliveries.
#[utoipa::path(delete, path = "/agent/keys/{id}", tag = "identity", security(("agent_key" = ["admin"])),
    params(("id" = String, Path, description = "The id of the key")),
    responses((status = 200, body = SuccessReply<AgentKeyRevoked>, description = "The key has ended."),
        (status = 404, description = "The agent has no such key.")))]
async fn revoke_key(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::revoke_key(&principal, &state.hub, state.hub.frames(), &id).await?,
    )
}

/// Rotate the registration's key
///
/// A new key for the registration. The old one works for `overlap_s` more seconds, 0 by default. If the answer is lost, the
/// same request may be repeated with the old key and the same `Idempotency-Key` until the new key is first used.
#[utoipa::path(post, path = "/agent/keys/rotate", tag = "identity", request_body = KeyRotation, security(("agent_key" = ["admin"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable")),
    responses((status = 200, body = SuccessReply<RotatedKey>, description = "The new key. `api_key` is shown only here."),
        (status = 409, description = "The Idempotency-Key was used with another body.")))]
async fn rotate_key(
    State(state): State<AppState>,
    auth: AuthResult,
    idempotency: IdempotencyHeader,
    headers: HeaderMap,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let idempotency_key = idempotency.with_body(&body)?;
    let principal =
        auth::authenticate_rotation(&state, auth, &headers, idempotency_key.as_ref()).await?;
    let rotation = KeyRotation::parse(&body)?;
    let rotated = lifecycle::rotate_key(
        &principal,
        &state.hub,
        state.hub.frames(),
        rotation,
        idempotency_key,
    )
    .await?;
    reply::wrapped_json(&state, StatusCode::OK, rotated)
}
