//! Envelopes without a hub: a small receive endpoint, and a sender that posts to one (TRN-44, ENV-12…14).

use crate::{Client, Error, Result, http, limits};
use bytes::Bytes;
use chorus_wire::message::ReceiverReply;
use chorus_wire::{CHORUS_VERSION, envelope::Envelope, json};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, sync::Arc};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// A valid envelope that a peer posted, and where its answer goes.
#[derive(Debug)]
pub struct Posted {
    pub envelope: Envelope,
    pub answer: oneshot::Sender<ReceiverReply>,
}

/// What a receiver says of an envelope that breaks a rule.
pub const INVALID_ENVELOPE: &str = "INVALID_ENVELOPE";
pub const UNSUPPORTED_VERSION: &str = "UNSUPPORTED_VERSION";

/// Accepts peers and hands their envelopes on in the order they came, until `stop` is true; then the answers that are under
/// way still leave.
pub async fn receive(
    listener: TcpListener,
    to: mpsc::Sender<Posted>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(limits::DIRECT_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((socket, place)) => {
                tokio::spawn(converse(socket, to.clone(), stop.clone(), place));
            }
            Err(error) => {
                // Out of file descriptors, most likely: without a pause this would spin.
                tracing::warn!(%error, "a peer could not be accepted");
                tokio::time::sleep(limits::BACKOFF.0).await;
            }
        }
    }
    let everyone = places.acquire_many(limits::DIRECT_CONNECTIONS as u32);
    let _ = tokio::time::timeout(limits::DIRECT_FAREWELL, everyone).await;
}

/// A peer, and the place it takes until it has gone.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places
        .clone()
        .acquire_owned()
        .await
        .map_err(std::io::Error::other)?;
    Ok((listener.accept().await?.0, place))
}

async fn converse(
    socket: TcpStream,
    to: mpsc::Sender<Posted>,
    mut stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
) {
    let serve = service_fn(|request| {
        let to = to.clone();
        async move { Ok::<_, Infallible>(answer(request, to).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::DIRECT_REQUEST)
        .max_buf_size(chorus_wire::limits::CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(socket), serve);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = stop.wait_for(|stop| *stop) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a direct connection broke");
    }
}

async fn answer(request: Request<Incoming>, to: mpsc::Sender<Posted>) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        let mut refused = reply(
            405,
            &ReceiverReply::error(INVALID_ENVELOPE, "post an envelope here"),
        );
        refused
            .headers_mut()
            .insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return refused;
    }
    let body = Limited::new(request.into_body(), chorus_wire::limits::BODY_BYTES).collect();
    let body = match tokio::time::timeout(limits::DIRECT_REQUEST, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let detail = format!(
                "the request is larger than {} bytes or broken off",
                chorus_wire::limits::BODY_BYTES
            );
            return reply(413, &ReceiverReply::error(INVALID_ENVELOPE, detail));
        }
        Err(_) => {
            return reply(
                408,
                &ReceiverReply::error(INVALID_ENVELOPE, "the request was not sent in time"),
            );
        }
    };
    let envelope = match check(&body) {
        Ok(envelope) => envelope,
        Err(refused) => return reply(400, &refused),
    };
    let (answer, answered) = oneshot::channel();
    let busy = || {
        reply(
            503,
            &ReceiverReply::error("UNAVAILABLE", "the receiver is busy or stopping; try again"),
        )
    };
    if to.try_send(Posted { envelope, answer }).is_err() {
        return busy();
    }
    match tokio::time::timeout(limits::DIRECT_ANSWER, answered).await {
        // R-23: a protocol reply counts as an answer under any 4xx, so a refusal is one.
        Ok(Ok(said)) if said.status == "ok" => reply(200, &said),
        Ok(Ok(said)) => reply(422, &said),
        Ok(Err(_)) | Err(_) => busy(),
    }
}

/// The envelope in `{"envelope":{…}}`, or the protocol's words for what is wrong with it.
pub fn check(body: &[u8]) -> std::result::Result<Envelope, ReceiverReply> {
    let mut fields = json::text(body)
        .and_then(json::object)
        .map_err(|e| invalid(&e))?;
    let Some(envelope) = fields.take("envelope") else {
        return Err(ReceiverReply::error(INVALID_ENVELOPE, "missing envelope"));
    };
    fields.end().map_err(|e| invalid(&e))?;
    open(&envelope.to_string())
}

/// The envelope in `text`, whichever way it came, or what its sender is to be told.
pub fn open(text: &str) -> std::result::Result<Envelope, ReceiverReply> {
    let value = json::value(text).map_err(|e| invalid(&e))?;
    let version = value
        .get("chorus_version")
        .and_then(|version| version.as_str());
    if version.is_some_and(|version| version != CHORUS_VERSION) {
        let detail = format!("this receiver speaks {CHORUS_VERSION}");
        return Err(ReceiverReply::error(UNSUPPORTED_VERSION, detail));
    }
    Envelope::parse(text).map_err(|e| invalid(&e))
}

fn invalid(error: &chorus_wire::Error) -> ReceiverReply {
    ReceiverReply::error(INVALID_ENVELOPE, detail(&error.message))
}

/// ENV-14 prints `missing sender_culture`; other faults keep their sentence.
fn detail(message: &str) -> String {
    let plain = message.strip_prefix("envelope.").unwrap_or(message);
    match plain.strip_suffix(" is required") {
        Some(field) => format!("missing {field}"),
        None => plain.to_owned(),
    }
}

fn reply(status: u16, said: &ReceiverReply) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(said).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Posts an envelope to a peer's endpoint and returns what it says. Tried again while the peer cannot be reached.
pub async fn send(url: &str, envelope: &Envelope, retries: u32) -> Result<ReceiverReply> {
    let body = format!(r#"{{"envelope":{}}}"#, envelope.to_json());
    let peer = Client::endpoint(url)?;
    let mut failures = 0;
    loop {
        let asked = peer
            .ask(http::Call::post("", body.clone()))
            .await
            .and_then(|answer| understood(&answer));
        match asked {
            Err(error) if error.passes() && failures < retries => failures += 1,
            Err(_) | Ok(_) => return asked,
        }
        tokio::time::sleep(peer.backoff.wait(failures)).await;
    }
}

/// A protocol reply counts under a 2xx or a 4xx (R-23); anything else is no delivery.
fn understood(answer: &http::Answer) -> Result<ReceiverReply> {
    let said = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
    match said {
        Some(said)
            if matches!(answer.status, 200..300 | 400..500)
                && ReceiverReply::is_protocol(&said) =>
        {
            serde_json::from_value(said).map_err(|e| Error::Answer(e.to_string()))
        }
        Some(_) | None if answer.status >= 500 || matches!(answer.status, 408 | 429) => {
            Err(Error::Transport(format!(
                "the receiver answered with status {}",
                answer.status
            )))
        }
        Some(_) | None => Err(Error::Answer(format!(
            "status {} without a protocol reply",
            answer.status
        ))),
    }
}
