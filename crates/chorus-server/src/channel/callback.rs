//! Callbacks: members post one event or a stream of events, and create persistent callbacks.

use super::callback_stream;
use crate::http::path_params::PathParamPair;
use crate::http::reply::{self, ApiResult};
use crate::http::{
    admission, app_state::AppState, auth::RequireKey, body::JsonBytes,
    idempotency::IdempotencyHeader, rate_limit::CallerId,
};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::channel::callback::{self, CallbackToken};
use chorus_wire::channel::persistent_callback::PersistentCallback;
use chorus_wire::reply::{FailureReply, SuccessReply};
use chorus_wire::{ErrorCode, secret::Secret};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(post_callback_event))
        .routes(routes!(create_persistent_callback))
}

/// Answer in a channel: the URL is the credential; as `application/x-ndjson`, an event a line for as long as it takes
#[utoipa::path(post, path = "/channels/{id}/inbox/{token}", tag = "channel", request_body = chorus_wire::channel::callback_event::CallbackPost,
    params(("id" = String, Path), ("token" = String, Path, description = "The `tok_…` of the callback"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and event are heard once, for 24 hours")),
    responses((status = 200, body = Object, description = "It is in the channel's history"),
        (status = 404, body = FailureReply, description = "No such callback"),
        (status = 409, body = FailureReply, description = "The Idempotency-Key was used with another event"),
        (status = 410, body = FailureReply, description = "It expired, or its member or channel is gone"),
        (status = 429, body = FailureReply, description = "Too many events, or too many streams of this member")))]
async fn post_callback_event(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &state).await;
    let (id, token) = path.map(|Path(path)| path).unwrap_or_default();
    // Before the body is read: a client that guesses tokens gets the same response for every body.
    let callback_token = match CallbackToken::find(&state.hub, &id, &Secret::new(token)).await {
        Ok(callback_token) => callback_token,
        Err(error) => {
            if error.code == ErrorCode::NotFound {
                admission::spend_address_budget(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget = admission::spend_caller_budget(
        &state,
        CallerId::Connection(callback_token.member_id().into()),
    )
    .await?;
    let event_count = if is_ndjson(&parts.headers) {
        callback_stream::read_ndjson(&state, &callback_token, content).await?
    } else {
        let idempotency_key = IdempotencyHeader::from_request_parts(&mut parts, &state).await?;
        let JsonBytes(event) =
            JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
        let idempotency = idempotency_key.with_body(&event)?;
        callback_token
            .accept_event(&state.hub, &event, idempotency)
            .await?;
        1
    };
    let mut response = reply::bare_json(
        StatusCode::OK,
        &json!({"status": "ok", "events": event_count}),
    )?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}

fn is_ndjson(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    matches!(
        essence.as_str(),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl"
    )
}

/// A callback of this member's own, for what answers nothing; the one before stops working at once
#[utoipa::path(post, path = "/channels/{id}/members/{name}/callback", tag = "channel",
    params(("id" = String, Path), ("name" = String, Path)), security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<PersistentCallback>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply), (status = 409, body = FailureReply, description = "The owner speaks with its key")))]
async fn create_persistent_callback(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        callback::create_persistent_callback(&principal, &state.hub, &id, &name).await?,
    )
}
