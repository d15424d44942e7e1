//! `/agent/connection` and `/inbox/{secret}`: the agent host, by which services deliver to agents of this hub (CHN-01…05, CHN-20, R-70).

use crate::http::reply::{self, ApiResult};
use crate::http::{
    admission, app_state::AppState, auth::RequireKey, body::JsonBytes, rate_limit::CallerId,
};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::channel::agent_host::{self, HostedInbox};
use chorus_wire::channel::connection::{ConnectionCreated, ConnectionRevoked};
use chorus_wire::channel::delivery::{ChannelDelivery, WebhookHeaders};
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, ErrorCode, json, secret::Secret};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_connection, revoke_connection))
        .routes(routes!(receive_delivery))
}

/// Create a connection string
///
/// A URL by which services deliver to this agent. It is shown only in this reply, and the previous one stops working.
#[utoipa::path(post, path = "/agent/connection", tag = "channel", security(("agent_key" = ["channels"])),
    responses((status = 200, body = SuccessReply<ConnectionCreated>, description = "The connection string.")))]
async fn create_connection(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    let connection =
        agent_host::create_connection_string(&principal, &state.hub, &state.public_url).await?;
    reply::wrapped_json(&state, StatusCode::OK, connection)
}

/// Revoke the connection string
///
/// Services that have it can no longer deliver to this agent.
#[utoipa::path(delete, path = "/agent/connection", tag = "channel", security(("agent_key" = ["channels"])),
    responses((status = 200, body = SuccessReply<ConnectionRevoked>, description = "There is no connection string any more.")))]
async fn revoke_connection(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        agent_host::revoke_connection_string(&principal, &state.hub).await?,
    )
}

/// Turns a 429 into a 503: services retry only after a 5xx (CHN-22), so a 429 would lose the delivery.
fn retry_later_error(rate_limited: Error) -> Error {
    let message = "this agent has been delivered as much as it may be for now; Retry-After says when to come back";
    Error {
        retry_after: rate_limited.retry_after,
        ..Error::new(ErrorCode::Unavailable, message)
    }
}

/// The headers of Standard Webhooks, which the agent needs to verify the delivery (CHN-34).
fn read_webhook_headers(headers: &HeaderMap) -> Option<WebhookHeaders> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    WebhookHeaders::from_values(WebhookHeaders::NAMES.map(value))
}

/// The delivery is stored.
#[derive(Serialize, ToSchema)]
struct DeliveryAccepted {
    #[schema(example = "ok")]
    status: &'static str,
}

/// Deliver a channel message to an agent
///
/// For services: the connection string is the credential. The agent answers by the callback in the body. A repeated delivery of the
/// same message is accepted and has no effect.
#[utoipa::path(post, path = "/inbox/{secret}", tag = "channel", request_body = chorus_wire::channel::delivery::DeliveryBody,
    params(("secret" = String, Path, description = "The `sk_…` of the connection string")),
    responses((status = 200, body = DeliveryAccepted, description = "The delivery is stored for the agent."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 404, description = "The connection string is unknown or was revoked."),
        (status = 409, description = "The id is that of a channel of this hub."),
        (status = 503, description = "Too many deliveries, or the hub cannot answer right now. `Retry-After` says how many seconds to wait.")))]
async fn receive_delivery(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let secret = Path::<String>::from_request_parts(&mut parts, &state).await;
    let secret = Secret::new(secret.map(|Path(secret)| secret).unwrap_or_default());
    // Before the body is read: a client that guesses secrets gets the same response for every body.
    admission::check_guesses_left(&state, &parts)
        .await
        .map_err(retry_later_error)?;
    let inbox = match HostedInbox::find(&state.hub, &secret).await {
        Ok(inbox) => inbox,
        Err(error) => {
            if error.code == ErrorCode::NotFound {
                admission::charge_wrong_secret(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget =
        admission::spend_caller_budget(&state, CallerId::Connection(inbox.agent_row_id().into()))
            .await
            .map_err(retry_later_error)?;
    let headers = parts.headers.clone();
    let JsonBytes(content) =
        JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
    let webhook_headers = read_webhook_headers(&headers);
    inbox
        .accept_delivery(
            &state.hub,
            &ChannelDelivery::parse(&content)?,
            json::decode_utf8(&content)?,
            webhook_headers,
        )
        .await?;
    let mut response = reply::bare_json(StatusCode::OK, &DeliveryAccepted { status: "ok" })?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}
