//! `POST /agent/session`: single-use tokens for clients that open a stream and cannot set headers.

use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::MaybeAuth};
use axum::extract::State;
use chorus_hub::identity;
use chorus_wire::reply::{SessionToken, SuccessReply};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(create_session))
}

/// Create a session token
///
/// A token that opens one stream within 300 seconds, for clients such as browsers that cannot set headers.
#[utoipa::path(post, path = "/agent/session", tag = "envelope", security(("agent_key" = ["any"])),
    responses((status = 200, body = SuccessReply<SessionToken>, description = "The token.")))]
async fn create_session(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        identity::create_session_token(&principal, state.hub.identity()).await?,
    )
}
