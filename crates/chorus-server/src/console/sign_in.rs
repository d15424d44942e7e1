//! `/console/links` and `/console/session`: signs a browser in with a single-use link.

use crate::http::auth::{self, RequireKey};
use crate::http::reply::{self, ApiResult};
use crate::http::{admission, app_state::AppState, body::JsonBytes};
use axum::extract::State;
use chorus_hub::{identity, lifecycle};
use chorus_wire::console::ConsoleSignIn;
use chorus_wire::reply::{ConsoleLink, ConsoleSession, ConsoleSessionEnded, SuccessReply};
use chorus_wire::secret::Secret;
use chorus_wire::{Error, ErrorCode};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(create_console_link))
        .routes(routes!(open_console_session, end_console_session))
}

/// Create a console link
///
/// A token that signs a browser in once, within 300 seconds: `/console#/link/{link_token}`. It is in the fragment, which
/// browsers do not send, so it reaches no log.
#[utoipa::path(post, path = "/console/links", tag = "identity", security(("agent_key" = ["any"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ConsoleLink>, description = "The token of the link."),
        (status = 403, description = "The request came with a console session.")))]
async fn create_console_link(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    headers: HeaderMap,
) -> ApiResult {
    // Otherwise a session would renew itself for ever.
    if auth::parse_bearer(&headers)?.is_some_and(identity::is_sign_in_credential) {
        let message = "a console session makes no links; use the key";
        return Err(Error::new(ErrorCode::Forbidden, message).into());
    }
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        identity::create_console_link(&principal, state.hub.identity()).await?,
    )
}

/// Open a console session
///
/// Spends a link. The session has the rights of the key that made the link, for twelve hours, and ends with that key.
#[utoipa::path(post, path = "/console/session", tag = "identity", request_body = ConsoleSignIn,
    responses((status = 200, body = SuccessReply<ConsoleSession>, description = "The credential of the session."),
        (status = 401, description = "The link was used before, or has expired.")))]
async fn open_console_session(
    State(state): State<AppState>,
    parts: Parts,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let link_token = Secret::new(ConsoleSignIn::parse(&body)?.link_token);
    // A link is a secret that can be guessed at (D-20).
    admission::check_guesses_left(&state, &parts).await?;
    let opened = lifecycle::open_console_session(&state.hub, state.hub.frames(), &link_token).await;
    // Not when the store was away: that is no guess.
    if matches!(&opened, Err(error) if error.code == ErrorCode::Unauthorized) {
        admission::charge_wrong_secret(&state, &parts).await?;
    }
    reply::wrapped_json(&state, StatusCode::OK, opened?)
}

/// End a console session
///
/// The session that the request came with. Keys are not ended by it.
#[utoipa::path(delete, path = "/console/session", tag = "identity", security(("agent_key" = ["any"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ConsoleSessionEnded>, description = "The session has ended.")))]
async fn end_console_session(
    State(state): State<AppState>,
    RequireKey(_): RequireKey,
    headers: HeaderMap,
) -> ApiResult {
    let credential = auth::parse_bearer(&headers)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        lifecycle::end_console_session(&state.hub, state.hub.frames(), credential).await?,
    )
}
