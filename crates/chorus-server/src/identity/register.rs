//! `POST /register` and `POST /agents`: registration by the agent itself or by an operator (TRN-01…07, TRN-28…31, R-10, R-11, R-103).

use crate::http::api_error::{ApiError, ErrorFormat};
use crate::http::auth::{self, AuthResult, RequireOperator};
use crate::http::idempotency::IdempotencyHeader;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, body::JsonBytes};
use axum::extract::State;
use bytes::Bytes;
use chorus_hub::{Principal, lifecycle};
use chorus_wire::reply::{
    MarketRegistrationReply, OperatorRegistrationReply, RegistrationReply, SuccessReply,
};
use chorus_wire::{Result, registration, registration::RegistrationRequest};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(register_agent))
        .routes(routes!(register_agent_as_operator))
}

/// The reply to a registration, in the form of its request.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum RegistrationAnswer {
    Wrapped(SuccessReply<RegistrationReply>),
    Market(MarketRegistrationReply),
}

/// Register an agent
///
/// A new name gets a key, which is shown only in this reply. With the agent's current key the same request updates the
/// registration and replaces the key. The body has the form with a card or the form of the market; a body in the form of the
/// market gets its reply and its errors in that form. If the answer is lost, the same request may be repeated with the same
/// `Idempotency-Key`: a new registration for 10 minutes, with an `Idempotency-Key` of at least 20 random characters; a rotation
/// with the old key, until the new key is first used.
#[utoipa::path(post, path = "/register", tag = "identity", request_body = chorus_wire::registration::RegistrationBody,
    security((), ("agent_key" = ["admin"]), ("operator_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request repeatable")),
    responses((status = 201, body = RegistrationAnswer, description = "Registered. `api_key` is shown only here."),
        (status = 200, body = RegistrationAnswer, description = "Updated, with a new key. The old key no longer works."),
        (status = 403, description = "The invite code is missing, unknown, revoked, expired or used up, or the owner belongs to another key."),
        (status = 409, description = "The name is taken, or the Idempotency-Key was used with another body.")))]
async fn register_agent(
    State(state): State<AppState>,
    auth: AuthResult,
    idempotency: IdempotencyHeader,
    headers: HeaderMap,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    // Evaluated only on error: the form of the error follows the form of the body, even when it cannot be parsed.
    let error_format = || {
        if registration::looks_like_market(&body) {
            ErrorFormat::Market
        } else {
            ErrorFormat::Wrapped
        }
    };
    let outcome = run_registration(&state, auth, idempotency, &headers, &body).await;
    outcome.map_err(|error| ApiError::new(error, error_format()))?
}

async fn run_registration(
    state: &AppState,
    auth: AuthResult,
    idempotency: IdempotencyHeader,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<ApiResult> {
    let idempotency_key = match &auth.outcome {
        Ok(Principal::Anonymous | Principal::Operator(_)) => None,
        // An invalid body is refused after an invalid key.
        Ok(Principal::Agent(_)) | Err(_) => idempotency.with_body(body).ok().flatten(),
    };
    let outcome = auth::authenticate_rotation(state, auth, headers, idempotency_key.as_ref()).await;
    let principal = auth::ignore_dead_key(outcome, headers)?;
    let request = RegistrationRequest::parse(body)?;
    let is_market_form = request.is_market_form();
    let (is_new, registered) = lifecycle::register_agent(
        &principal,
        &state.hub,
        state.hub.frames(),
        request,
        idempotency_key,
    )
    .await?;
    let answer = if is_market_form {
        RegistrationAnswer::Market(to_market_reply(registered))
    } else {
        RegistrationAnswer::Wrapped(reply::wrap_success(state, registered))
    };
    Ok(reply::bare_json(registration_status(is_new), &answer))
}

fn registration_status(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// The bare reply of the jobs document.
fn to_market_reply(registered: RegistrationReply) -> MarketRegistrationReply {
    MarketRegistrationReply {
        status: registered.status.unwrap_or_else(|| "registered".into()),
        agent_id: registered.agent_id,
        reputation_score: registered.reputation_score.unwrap_or(50.0),
        api_key: registered.api_key,
    }
}

/// Register an agent as an operator
///
/// Registers an agent with an endpoint, or updates it. The agent need not take part.
#[utoipa::path(post, path = "/agents", tag = "identity", request_body = chorus_wire::registration::OperatorRegistration, security(("operator_key" = [])),
    responses((status = 201, body = SuccessReply<OperatorRegistrationReply>, description = "Registered. `api_key` is shown only here."),
        (status = 200, body = SuccessReply<OperatorRegistrationReply>, description = "Updated.")))]
async fn register_agent_as_operator(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let request = RegistrationRequest::parse_operator(&body)?;
    let (is_new, registered) =
        lifecycle::register_on_behalf(&principal, &state.hub, state.hub.frames(), request).await?;
    reply::wrapped_json(
        &state,
        registration_status(is_new),
        OperatorRegistrationReply::from(registered),
    )
}
