//! `POST /agent/endpoint-secret`: the secret that signs what the hub posts to an agent's endpoints.

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::lifecycle;
use chorus_wire::reply::{EndpointSecret, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(create_endpoint_secret))
}

/// Create an endpoint secret
///
/// From now on every POST of the hub to the agent's `endpoint` and `api_endpoint` carries the headers of Standard Webhooks, signed
/// with this secret. It replaces the secret before it and is shown only in this reply.
#[utoipa::path(post, path = "/agent/endpoint-secret", tag = "identity", security(("agent_key" = ["admin"])),
    responses((status = 201, body = SuccessReply<EndpointSecret>, description = "The secret. It is shown only here.")))]
async fn create_endpoint_secret(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        lifecycle::create_endpoint_secret(&principal, &state.hub).await?,
    )
}
