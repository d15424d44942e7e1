//! `/agent/connection` and `/inbox/{secret}`: how services reach an agent that this hub hosts (CHN-01…05, CHN-20, R-70).

use crate::http::reply::{self, ApiResult};
use crate::http::{
    admission, app_state::AppState, auth::RequireKey, body::JsonBytes, rate_limit::CallerId,
};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use chorus_hub::channel::agent_host::{self, HostedInbox};
use chorus_wire::channel::connection::{ConnectionCreated, ConnectionRevoked};
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::reply::{FailureReply, SuccessReply};
use chorus_wire::{Code, Error, json, secret::Secret};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_connection, revoke_connection))
        .routes(routes!(receive_delivery))
}

/// A new connection string for this agent; the one before stops working at once
#[utoipa::path(post, path = "/agent/connection", tag = "channel", security(("agent_key" = [])),
    responses((status = 200, body = SuccessReply<ConnectionCreated>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn create_connection(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    let connection =
        agent_host::create_connection_string(&principal, &state.hub, &state.public_url).await?;
    reply::wrapped_json(&state, StatusCode::OK, connection)
}

/// Revoke this agent's connection string
#[utoipa::path(delete, path = "/agent/connection", tag = "channel", security(("agent_key" = [])),
    responses((status = 200, body = SuccessReply<ConnectionRevoked>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
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

/// A service may try again after a 5xx and after nothing else (CHN-22): a 429 would lose the delivery.
fn retry_later_error(busy: Error) -> Error {
    let message = "this agent has been delivered as much as it may be for now; Retry-After says when to come back";
    Error {
        retry_after: busy.retry_after,
        ..Error::new(Code::Unavailable, message)
    }
}

/// Deliver to an agent: the connection string is the credential, and the answer comes by the callback
#[utoipa::path(post, path = "/inbox/{secret}", tag = "channel", request_body = ChannelDelivery,
    params(("secret" = String, Path, description = "The `sk_…` of the connection string")),
    responses((status = 200, body = Object, description = "It is kept for the agent, now or from an earlier try"),
        (status = 404, body = FailureReply, description = "No such connection string, or no longer"),
        (status = 503, body = FailureReply, description = "Too much at once: try again after Retry-After")))]
async fn receive_delivery(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let secret = Path::<String>::from_request_parts(&mut parts, &state).await;
    let secret = Secret::new(secret.map(|Path(secret)| secret).unwrap_or_default());
    // Before anything of the body is looked at: whoever guesses learns nothing, whatever it sends.
    let letterbox = match HostedInbox::find(&state.hub, &secret).await {
        Ok(letterbox) => letterbox,
        Err(error) => {
            if error.code == Code::NotFound {
                admission::spend_address_budget(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget = admission::spend_caller_budget(&state, CallerId::Connection(letterbox.agent_row_id()))
        .await
        .map_err(retry_later_error)?;
    let JsonBytes(content) =
        JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
    letterbox
        .accept_delivery(
            &state.hub,
            &ChannelDelivery::parse(&content)?,
            json::decode_utf8(&content)?,
        )
        .await?;
    let mut response = reply::bare_json(StatusCode::OK, &serde_json::json!({"status": "ok"}))?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}
