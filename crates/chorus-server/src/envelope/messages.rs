//! `POST /messages` and `GET /messages/{trace_id}`: sending, and where a message stands (TRN-13…27, TRN-52…54, R-22, R-27, R-29).

use crate::reply::{self, Answer, Refused};
use crate::{
    auth::Known, auth::Who, body::Whole, doors::Doors, negotiate, once::Once, query::Segment,
};
use axum::extract::{FromRequestParts, State};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use chorus_hub::envelope::{self, Outcome, Streamed};
use chorus_wire::message::{Delivery, SendRequest, Sent, Standing};
use chorus_wire::reply::{Failure, Success};
use chorus_wire::{Error, sse};
use http::{HeaderValue, StatusCode, header, request::Parts};
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const EVENT_STREAM: &str = "text/event-stream";

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(send))
        .routes(routes!(standing))
}

/// A message and whom it is for.
#[derive(ToSchema)]
#[schema(example = json!({"receiver_id": "other-agent@chorus", "envelope": {"chorus_version": "0.4",
    "sender_id": "my-agent@chorus", "original_text": "Hello, shall we work on this together?", "sender_culture": "en"}}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/message.rs reads it"
)]
struct SendBody {
    /// Address, short name, UUID or handle.
    receiver_id: String,
    /// The envelope, or an A2A message with it as its one data part.
    envelope: chorus_wire::envelope::Envelope,
    /// Relay the receiver's answer as it comes; ask with `Accept: text/event-stream`.
    stream: Option<bool>,
}

/// What a send says beside its body.
struct Manner {
    key: Once,
    streams: bool,
}

impl FromRequestParts<Doors> for Manner {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        doors: &Doors,
    ) -> std::result::Result<Self, Refused> {
        let key = Once::from_request_parts(parts, doors).await?;
        Ok(Self {
            key,
            streams: negotiate::names(&parts.headers, EVENT_STREAM),
        })
    }
}

/// Send a message
#[utoipa::path(post, path = "/messages", tag = "envelope", request_body = SendBody,
    security(("agent_key" = []), ("operator_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key and body get the first answer again, for 24 hours")),
    responses((status = 200, description = "`delivered_sse`, `delivered` or `failed`", content(
            (Success<Sent> = "application/json"), (String = "text/event-stream"))),
        (status = 202, body = Success<Sent>, description = "`queued`: kept until the receiver comes"),
        (status = 401, body = Failure), (status = 403, body = Failure, description = "A key sends only as its own agent"),
        (status = 404, body = Failure, description = "The receiver is not registered"),
        (status = 409, body = Failure, description = "The Idempotency-Key was used with another body")))]
async fn send(
    State(doors): State<Doors>,
    Known(who): Known,
    manner: Manner,
    Whole(body): Whole,
) -> Answer {
    let request = SendRequest::parse(&body)?;
    let once = manner.key.with(&body)?;
    if request.stream && manner.streams {
        return match envelope::send_streaming(&who, &doors.hub, request, once).await? {
            Streamed::Relay(events) => Ok(relay(events)),
            Streamed::Whole(outcome) => done(&outcome),
        };
    }
    let outcome = envelope::send(&who, &doors.hub, request, once).await?;
    let status = StatusCode::from_u16(outcome.delivery.status()).unwrap_or(StatusCode::OK);
    reply::wrapped(
        &doors,
        status,
        Sent::new(&outcome.delivery, outcome.trace_id),
    )
}

/// The ordinary outcome as the one event of a stream; its name says which it was (TRN-54).
fn done(outcome: &Outcome) -> Answer {
    let sent = Sent::new(&outcome.delivery, outcome.trace_id);
    let (name, data) = match &outcome.delivery {
        Delivery::Failed { error_code, detail } => {
            let fault = Fault {
                code: error_code,
                message: detail,
                sent,
            };
            ("error", serde_json::to_string(&fault))
        }
        Delivery::Delivered { .. } | Delivery::DeliveredSse | Delivery::Queued => {
            ("done", serde_json::to_string(&sent))
        }
    };
    let data = data.map_err(Error::internal)?;
    Ok(events(Body::from(sse::event(name, None, &data))))
}

/// The data of an `error` event: what readers of such streams look for (lesson 12), then the ordinary outcome.
#[derive(serde::Serialize)]
struct Fault<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(flatten)]
    sent: Sent,
}

fn relay(mut from: mpsc::Receiver<Bytes>) -> Response {
    let chunks = futures_util::stream::poll_fn(move |cx| {
        from.poll_recv(cx)
            .map(|chunk| chunk.map(Ok::<_, std::io::Error>))
    });
    events(Body::from_stream(chunks))
}

fn events(body: Body) -> Response {
    let mut response = reply::text(StatusCode::OK, EVENT_STREAM, body);
    // Some proxies hold a stream back until they have a block of it, unless told not to.
    response
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Where a message stands; strangers are told that there is none
#[utoipa::path(get, path = "/messages/{trace_id}", tag = "envelope", security(("agent_key" = []), ("operator_key" = [])),
    params(("trace_id" = String, Path)),
    responses((status = 200, body = Success<Standing>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn standing(State(doors): State<Doors>, Who(who): Who, Segment(trace_id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        envelope::standing(&who, &doors.hub, &trace_id).await?,
    )
}
