//! Requests with an `Idempotency-Key`: which routes recognise a repetition by themselves, where a key is refused, and
//! how all other routes answer a repetition as the first time.

use super::app_state::AppState;
use super::auth::AuthResult;
use super::next_handler::NextHandler;
use super::{body, idempotency, reply};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chorus_hub::Principal;
use chorus_hub::idempotent_request::{RememberedAnswer, RequestExecution, RequestStart};
use chorus_hub::identity::IdempotencyKey;
use chorus_wire::identity::AgentName;
use chorus_wire::registration::RegistrationRequest;
use chorus_wire::{Error, limits};
use http::{HeaderValue, Method, StatusCode, header};

/// Routes that recognise a repetition by themselves, by the key or by an id in the body. Their answer may be a stream, or
/// change with what has become of the message.
const OWN_RECORD_ROUTES: [&str; 5] = [
    "/messages",
    "/channels/{id}/messages",
    "/channels/{id}/inbox/{token}",
    "/inbox/{secret}",
    "/agent/keys/rotate",
];

/// Routes whose requests have their effect once, by the ids in them. One whose answer was lost in a crash is carried out again
/// for its answer.
const REPEATABLE_ROUTES: [&str; 3] = ["/transfer", "/jobs/{id}/claim", "/jobs/{id}/result"];

/// Routes where a key would say nothing: the calls of tools have ids of their own, which a client may use again.
const KEYLESS_ROUTES: [&str; 2] = ["/mcp", "/mcp/{channel}"];

const REGISTRATION_ROUTE: &str = "/register";

/// Max octets of a remembered answer: more than any answer to a write has. A larger one is given, but not again.
const REMEMBERED_ANSWER_BYTES: usize = 1024 * 1024;

/// Whether a POST to this route takes an `Idempotency-Key`.
pub fn takes_idempotency_key(route: &str) -> bool {
    !KEYLESS_ROUTES.contains(&route)
}

/// Runs the handler, or gives the answer of the request that this one repeats.
pub async fn run_once(
    state: &AppState,
    request: Request,
    next: NextHandler,
    route: &str,
) -> Result<Response, Error> {
    if request.method() != Method::POST || route.is_empty() {
        return Ok(next.run(request).await);
    }
    let Some(key) = idempotency::parse_key_header(request.headers())? else {
        return Ok(next.run(request).await);
    };
    // On the heap: few requests have a key, and the others would carry the room for it.
    Box::pin(run_keyed(state, request, next, route, key)).await
}

/// Runs the handler of a request with an `Idempotency-Key`, or gives the answer of the request that this one repeats.
async fn run_keyed(
    state: &AppState,
    request: Request,
    next: NextHandler,
    route: &str,
    key: String,
) -> Result<Response, Error> {
    if !takes_idempotency_key(route) {
        let message = "Idempotency-Key has no meaning for tool calls; a tool that may be repeated takes an argument for it";
        return Err(Error::invalid_field("Idempotency-Key", message));
    }
    let principal = request
        .extensions()
        .get::<AuthResult>()
        .and_then(|auth| auth.outcome.clone().ok());
    let principal = match principal {
        Some(Principal::Anonymous) if route != REGISTRATION_ROUTE => None,
        principal => principal,
    };
    // The handler refuses a request without a valid key.
    let Some(principal) = principal.filter(|_| !OWN_RECORD_ROUTES.contains(&route)) else {
        return Ok(next.run(request).await);
    };
    let (parts, body) = request.into_parts();
    let body = match body::read_request_body(state, &parts, body, limits::BODY_BYTES).await {
        Ok(body) => body,
        Err(error) => return Ok(error.into_response()),
    };
    let resume = |body| Request::from_parts(parts.clone(), Body::from(body));
    if route == REGISTRATION_ROUTE && rotates_own_key(state, &principal, &body) {
        return Ok(next.run(resume(body)).await);
    }
    check_key_strength(&principal, &key)?;
    let key = IdempotencyKey {
        key,
        fingerprint: idempotency::fingerprint_request(parts.uri.query(), &body),
    };
    let requests = &state.idempotent_requests;
    let path = parts.uri.path();
    match requests.begin(&principal, &state.hub, path, key).await? {
        RequestStart::Repeat(answer) => Ok(give_answer(answer)),
        RequestStart::Execute(execution) => {
            let is_repeatable = REPEATABLE_ROUTES.contains(&route);
            let response = match execution.is_answer_lost() && is_repeatable {
                true => next.run(resume(body)).await,
                false => execution.run(next.run(resume(body))).await,
            };
            keep_answer(&execution, response).await
        }
    }
}

/// Whether this registration is of the caller itself: it rotates the caller's key, and has rules of its own.
fn rotates_own_key(state: &AppState, principal: &Principal, body: &Bytes) -> bool {
    let Ok(agent) = principal.require_agent() else {
        return false;
    };
    let host = &state.hub.options().host_name;
    let own_name = AgentName::parse("agent_id", &agent.agent_id);
    match (RegistrationRequest::parse(body), own_name) {
        (Ok(request), Ok(own_name)) => {
            request.name.canonical_text(host) == own_name.canonical_text(host)
        }
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// The answer to a registration contains the agent's key, and a client that has none is known by nothing but this one.
fn check_key_strength(principal: &Principal, key: &str) -> Result<(), Error> {
    let min_chars = limits::REGISTRATION_KEY_MIN_CHARS;
    match principal {
        Principal::Anonymous if key.len() < min_chars => {
            let message = format!(
                "Idempotency-Key of a registration must have at least {min_chars} random characters: it is what the key of the agent is given again for"
            );
            Err(Error::invalid_field("Idempotency-Key", message))
        }
        Principal::Anonymous | Principal::Agent(_) | Principal::Operator(_) => Ok(()),
    }
}

fn give_answer(answer: RememberedAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = reply::json_response(status, answer.body);
    if let Ok(content_type) = HeaderValue::try_from(answer.content_type) {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
    }
    response
}

/// Remembers the answer of a request that succeeded, and gives it.
async fn keep_answer(execution: &RequestExecution, response: Response) -> Result<Response, Error> {
    let status = response.status().as_u16();
    if !response.status().is_success() {
        let first = execution.finish(status, None).await?;
        return Ok(first.map_or(response, give_answer));
    }
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, REMEMBERED_ANSWER_BYTES)
        .await
        .map_err(|_| Error::internal("the answer is too large to be remembered"))?;
    let content_type = parts.headers.get(header::CONTENT_TYPE);
    let answer = RememberedAnswer {
        status,
        content_type: content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    match execution.finish(status, Some(&answer)).await {
        Ok(Some(first)) => return Ok(give_answer(first)),
        Ok(None) => {}
        // The request was carried out. A repetition finds that, and makes the answer again if it can.
        Err(error) => {
            tracing::warn!(%error, cause = error.cause, "the answer to a request with an Idempotency-Key was not stored");
        }
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}
