//! Callbacks: members post one event or a stream of events, and create persistent callbacks.

use super::callback_stream;
use crate::http::path_params::PathParamPair;
use crate::http::reply::{self, ApiResult};
use crate::http::{
    admission, app_state::AppState, auth::RequireKey, body, body::JsonBytes,
    idempotency::IdempotencyHeader,
};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::channel::callback::{self, ResolvedCallback};
use chorus_wire::channel::persistent_callback::PersistentCallback;
use chorus_wire::reply::SuccessReply;
use chorus_wire::{ErrorCode, secret::Secret};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(post_callback_event))
        .routes(routes!(create_persistent_callback))
}

/// How many events were accepted.
#[derive(Serialize, ToSchema)]
struct CallbackAccepted {
    #[schema(example = "ok")]
    status: &'static str,
    events: usize,
}

/// Post an event to a channel
///
/// A member answers with the URL of its delivery, which is the credential. A body of type `application/x-ndjson` has one event on
/// each line, and may stay open as long as the member works.
#[utoipa::path(post, path = "/channels/{id}/inbox/{token}", tag = "channel", request_body = chorus_wire::channel::callback_event::CallbackPost,
    params(("id" = String, Path, description = "The id of the channel"), ("token" = String, Path, description = "The `tok_…` of the callback"), ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request safe")),
    responses((status = 200, body = CallbackAccepted, description = "The events are in the channel's history."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 404, description = "There is no such callback."),
        (status = 409, description = "The Idempotency-Key was used with another event."),
        (status = 410, description = "The callback has expired, or its member or channel is gone."),
        (status = 429, description = "Too many events, or too many open streams of this member.")))]
async fn post_callback_event(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &state).await;
    let (id, token) = path.map(|Path(path)| path).unwrap_or_default();
    // Before the body is read: a client that guesses tokens gets the same response for every body.
    admission::check_guesses_left(&state, &parts).await?;
    let resolved = match ResolvedCallback::find(&state.hub, &id, &Secret::new(token)).await {
        Ok(resolved) => resolved,
        Err(error) => {
            if error.code == ErrorCode::NotFound {
                admission::charge_wrong_secret(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget = admission::spend_caller_budget(&state, resolved.budget_caller()).await?;
    let event_count = if is_ndjson(&parts.headers) {
        callback_stream::read_ndjson(&state, &resolved, content).await?
    } else {
        let idempotency_key = IdempotencyHeader::from_request_parts(&mut parts, &state).await?;
        let JsonBytes(event) =
            JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
        let idempotency = idempotency_key.with_body(&event)?;
        resolved
            .accept_event(&state.hub, &event, idempotency)
            .await?;
        1
    };
    let accepted = CallbackAccepted {
        status: "ok",
        events: event_count,
    };
    let mut response = reply::bare_json(StatusCode::OK, &accepted)?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}

fn is_ndjson(headers: &HeaderMap) -> bool {
    matches!(
        body::media_type(headers).as_str(),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl"
    )
}

/// Create a persistent callback
///
/// A callback URL that does not expire, for events that answer no delivery. The previous one stops working. For the member itself
/// and the owner of the channel.
#[utoipa::path(post, path = "/channels/{id}/members/{name}/callback", tag = "channel",
    params(("id" = String, Path, description = "The id of the channel"), ("name" = String, Path, description = "The name of the member in the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<PersistentCallback>, description = "The callback, shown only here."),
        (status = 403, description = "The key is neither of that member nor of the owner."),
        (status = 404, description = "There is no such channel or member for this key."),
        (status = 409, description = "The owner of the channel posts with its key.")))]
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
