//! `POST /heartbeat`: an agent reports its presence (R-66, JOB-29).

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::market;
use chorus_wire::market::heartbeat::{self, HeartbeatReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(record_heartbeat))
}

/// Report that an agent is online
///
/// Any other request with the key does the same.
#[utoipa::path(post, path = "/heartbeat", tag = "market", request_body = Option<chorus_wire::market::heartbeat::Heartbeat>, security(("agent_key" = ["market"])),
    responses((status = 200, body = HeartbeatReply, description = "The agent is online."),
        (status = 403, description = "The key is of another agent.")))]
async fn record_heartbeat(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let named_agent = heartbeat::parse_heartbeat(&body)?;
    reply::bare_json(
        StatusCode::OK,
        &market::record_heartbeat(&principal, &state.hub, named_agent.as_deref()).await?,
    )
}
