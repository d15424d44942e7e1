//! `POST /messages` and `GET /messages/{trace_id}`: sending a message and reading its state (TRN-13…27, TRN-52…54, R-22, R-27, R-29, R-103).

use crate::http::api_error::ApiError;
use crate::http::next_handler::DirectRoute;
use crate::http::reply::{self, ApiResult};
use crate::http::{
    app_state::AppState, auth::MaybeAuth, auth::RequireKey, body::JsonBytes,
    idempotency::IdempotencyHeader, negotiate, path_params::PathParam,
};
use axum::extract::{FromRequestParts, State};
use axum::handler::Handler;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use chorus_hub::envelope::{self, RepeatedSend, SendOutcome, StreamedSend};
use chorus_wire::message::{DeliveryOutcome, MessageStatus, SendReply, SendRequest};
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, sse};
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use tokio::sync::mpsc;
use utoipa_axum::{router::OpenApiRouter, routes};

const EVENT_STREAM: &str = "text/event-stream";

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(send_message))
        .routes(routes!(get_message_status))
}

/// Sends are most of the requests of a busy hub.
pub fn direct_route() -> DirectRoute {
    DirectRoute {
        method: Method::POST,
        path: "/messages",
        handler: |request, state| Handler::call(send_message, request, state),
    }
}

/// The headers of a send.
struct SendHeaders {
    idempotency_key: IdempotencyHeader,
    accepts_stream: bool,
    repeated: RepeatedSend,
}

impl FromRequestParts<AppState> for SendHeaders {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        let idempotency_key = IdempotencyHeader::from_request_parts(parts, state).await?;
        let is_retry = parts
            .headers
            .get("x-chorus-retry")
            .is_some_and(|value| value == "failed");
        Ok(Self {
            repeated: match is_retry {
                true => RepeatedSend::RetryFailed,
                false => RepeatedSend::FirstOutcome,
            },
            idempotency_key,
            // `"stream": true` is enough, unless the client names JSON and no stream.
            accepts_stream: negotiate::is_media_named(&parts.headers, EVENT_STREAM)
                || !negotiate::is_media_named(&parts.headers, "application/json"),
        })
    }
}

/// Send a message
///
/// Delivers an envelope to its receiver: by an open stream, to its endpoint, or later when it comes. With `stream: true` the
/// reply is a stream of server-sent events in place of the JSON, unless `Accept` names JSON and not `text/event-stream`;
/// `x-event-types` describes them.
#[utoipa::path(post, path = "/messages", tag = "envelope", request_body = chorus_wire::message::SendBody, security(("agent_key" = ["send"]), ("operator_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request safe"),
        ("X-Chorus-Retry" = Option<String>, Header, example = "failed", description = "`failed`: if the message of this Idempotency-Key could not be delivered to its receiver's endpoint, it is posted there again. It stays one message")),
    responses((status = 200, content((SuccessReply<SendReply> = "application/json"), (String = "text/event-stream")), description = "The outcome: `delivered_sse`, `delivered` or `failed`."),
        (status = 202, body = SuccessReply<SendReply>, description = "`queued`: the message is kept until the receiver comes."),
        (status = 403, description = "An agent's key sends only as that agent, or the quota of its owner does not suffice."),
        (status = 404, description = "The receiver is not registered."),
        (status = 409, description = "The Idempotency-Key was used with another body.")))]
async fn send_message(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    headers: SendHeaders,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let request = SendRequest::parse(&body)?;
    let idempotency = headers.idempotency_key.with_body(&body)?;
    // The body is a part of the connection's buffer. While it is held, the connection reads into a new buffer.
    drop(body);
    if request.stream && headers.accepts_stream {
        let sending = envelope::send_streaming(&principal, &state.hub, request, idempotency);
        return match Box::pin(sending).await? {
            StreamedSend::Relay(events) => Ok(relay_events(events)),
            StreamedSend::Finished(outcome) => outcome_event(&outcome),
        };
    }
    let repeated = headers.repeated;
    let outcome =
        envelope::send_envelope(&principal, &state.hub, request, idempotency, repeated).await?;
    let status = StatusCode::from_u16(outcome.delivery.http_status()).unwrap_or(StatusCode::OK);
    reply::wrapped_json(
        &state,
        status,
        SendReply::new(&outcome.delivery, outcome.trace_id),
    )
}

/// The outcome as a stream of one event, named `done` or `error` (TRN-54).
fn outcome_event(outcome: &SendOutcome) -> ApiResult {
    let sent = SendReply::new(&outcome.delivery, outcome.trace_id);
    let (name, data) = match &outcome.delivery {
        DeliveryOutcome::Failed { error_code, detail } => {
            let error_event = SendErrorEvent {
                code: error_code,
                message: detail,
                sent,
            };
            ("error", serde_json::to_string(&error_event))
        }
        DeliveryOutcome::Delivered { .. }
        | DeliveryOutcome::DeliveredSse
        | DeliveryOutcome::Queued => ("done", serde_json::to_string(&sent)),
    };
    let data = data.map_err(Error::internal)?;
    Ok(event_stream_response(Body::from(sse::format_event(
        name, None, &data,
    ))))
}

/// The data of an `error` event: the fields that stream readers look for (lesson 12), then the outcome.
#[derive(serde::Serialize)]
struct SendErrorEvent<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(flatten)]
    sent: SendReply,
}

fn relay_events(mut events: mpsc::Receiver<Bytes>) -> Response {
    let chunks = futures_util::stream::poll_fn(move |cx| {
        events
            .poll_recv(cx)
            .map(|chunk| chunk.map(Ok::<_, std::io::Error>))
    });
    event_stream_response(Body::from_stream(chunks))
}

fn event_stream_response(body: Body) -> Response {
    let mut response = reply::text_response(StatusCode::OK, EVENT_STREAM, body);
    // Some proxies buffer a stream until they have a block of it, unless told not to.
    response
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Get the state of a message
///
/// For its sender, its receiver and operators. For all others there is no such message.
#[utoipa::path(get, path = "/messages/{trace_id}", tag = "envelope", security(("agent_key" = ["read"]), ("operator_key" = [])),
    params(("trace_id" = String, Path, description = "The trace_id of the message")),
    responses((status = 200, body = SuccessReply<MessageStatus>, description = "The state of the message."),
        (status = 404, description = "There is no such message for this key.")))]
async fn get_message_status(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    PathParam(trace_id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        envelope::get_message_status(&principal, &state.hub, &trace_id).await?,
    )
}
