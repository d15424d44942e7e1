//! Envelopes without a hub: a receive endpoint, and a sender that posts to one (TRN-44, ENV-12…14).

use crate::allowed_peers::AllowedPeers;
use crate::{Error, HubClient, Result, http, limits};
use bytes::Bytes;
use chorus_wire::contract::{self, ContractFault};
use chorus_wire::message::{ReceiverReply, unwrap_a2a_message};
use chorus_wire::{CHORUS_VERSION, envelope::Envelope, json};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, sync::Arc};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

/// A valid envelope that a peer posted, and the channel for its answer.
#[derive(Debug)]
pub struct PostedEnvelope {
    pub envelope: Envelope,
    pub answer: oneshot::Sender<ReceiverReply>,
}

/// Error codes of a receiver for an invalid envelope.
pub const INVALID_ENVELOPE: &str = "INVALID_ENVELOPE";
pub const UNSUPPORTED_VERSION: &str = "UNSUPPORTED_VERSION";

/// Accepts peers that `allowed_peers` admits and passes on their envelopes in order, until `shutdown` is true. Answers in
/// progress are still written.
pub async fn serve_direct(
    listener: TcpListener,
    allowed_peers: AllowedPeers,
    envelope_sender: mpsc::Sender<PostedEnvelope>,
    mut shutdown: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits::MAX_DIRECT_CONNECTIONS));
    let allowed_peers = Arc::new(allowed_peers);
    loop {
        let accepted = tokio::select! {
            accepted = accept_connection(&listener, &slots) => accepted,
            _ = shutdown.wait_for(|shutdown| *shutdown) => break,
        };
        match accepted {
            Ok((socket, slot)) => {
                tokio::spawn(serve_connection(
                    socket,
                    allowed_peers.clone(),
                    envelope_sender.clone(),
                    shutdown.clone(),
                    slot,
                ));
            }
            Err(error) => {
                // Most likely no file descriptors are left: without a pause this would spin.
                tracing::warn!(%error, "a peer could not be accepted");
                tokio::time::sleep(limits::BACKOFF_RANGE.0).await;
            }
        }
    }
    let all_slots = slots.acquire_many(limits::MAX_DIRECT_CONNECTIONS as u32);
    let _ = tokio::time::timeout(limits::DIRECT_SHUTDOWN_TIMEOUT, all_slots).await;
}

/// The next connection, and the slot that it occupies until it closes.
async fn accept_connection(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = slots
        .clone()
        .acquire_owned()
        .await
        .map_err(std::io::Error::other)?;
    Ok((listener.accept().await?.0, slot))
}

async fn serve_connection(
    socket: TcpStream,
    allowed_peers: Arc<AllowedPeers>,
    envelope_sender: mpsc::Sender<PostedEnvelope>,
    mut shutdown: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
) {
    let serve = service_fn(|request| {
        let envelope_sender = envelope_sender.clone();
        let allowed_peers = allowed_peers.clone();
        async move {
            let answer = match allowed_peers.check_request(&request) {
                Ok(()) => answer_request(request, envelope_sender).await,
                Err((status, reply)) => json_response(status, &reply),
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::DIRECT_REQUEST_TIMEOUT)
        .max_buf_size(chorus_wire::limits::CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(socket), serve);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = shutdown.wait_for(|shutdown| *shutdown) => None,
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

async fn answer_request(
    request: Request<Incoming>,
    envelope_sender: mpsc::Sender<PostedEnvelope>,
) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        let mut refusal = json_response(
            405,
            &ReceiverReply::error(INVALID_ENVELOPE, "post an envelope here"),
        );
        refusal
            .headers_mut()
            .insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return refusal;
    }
    let body = Limited::new(request.into_body(), chorus_wire::limits::BODY_BYTES).collect();
    let body = match tokio::time::timeout(limits::DIRECT_REQUEST_TIMEOUT, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let detail = format!(
                "the request is larger than {} bytes or broken off",
                chorus_wire::limits::BODY_BYTES
            );
            return json_response(413, &ReceiverReply::error(INVALID_ENVELOPE, detail));
        }
        Err(_) => {
            return json_response(
                408,
                &ReceiverReply::error(INVALID_ENVELOPE, "the request was not sent in time"),
            );
        }
    };
    let envelope = match parse_posted(&body) {
        Ok(envelope) => envelope,
        Err(refusal) => return json_response(400, &refusal),
    };
    let (answer, answered) = oneshot::channel();
    let busy = || {
        json_response(
            503,
            &ReceiverReply::error("UNAVAILABLE", "the receiver is busy or stopping; try again"),
        )
    };
    if envelope_sender
        .try_send(PostedEnvelope { envelope, answer })
        .is_err()
    {
        return busy();
    }
    match tokio::time::timeout(limits::DIRECT_ANSWER_TIMEOUT, answered).await {
        // R-23: a protocol reply counts as an answer under any 4xx, so a refusal is one.
        Ok(Ok(reply)) if reply.status == "ok" => json_response(200, &reply),
        Ok(Ok(reply)) => json_response(422, &reply),
        Ok(Err(_)) | Err(_) => busy(),
    }
}

/// The envelope in `{"envelope":{…}}`, or the error reply for its sender.
pub fn parse_posted(body: &[u8]) -> std::result::Result<Envelope, ReceiverReply> {
    let fault = |fault: ContractFault| invalid_envelope(&fault.into());
    let root = contract::parse_root(body).map_err(fault)?;
    let fields = root.as_object().map_or(&[][..], |object| &object.0);
    if let Some((key, _)) = fields.iter().find(|(key, _)| key != "envelope") {
        return Err(fault(ContractFault::unknown(key)));
    }
    match fields.first() {
        Some((_, envelope)) => parse_envelope(envelope.text),
        None => Err(ReceiverReply::error(INVALID_ENVELOPE, "missing envelope")),
    }
}

/// The envelope in `text`, bare or inside an A2A message (ENV-21), or the error reply for its sender.
pub fn parse_envelope(text: &str) -> std::result::Result<Envelope, ReceiverReply> {
    let unwrapped = unwrap_a2a_message(text).map_err(|e| invalid_envelope(&e))?;
    let text = unwrapped.as_deref().unwrap_or(text);
    let value = json::parse_value(text).map_err(|e| invalid_envelope(&e))?;
    let version = value
        .get("chorus_version")
        .and_then(|version| version.as_str());
    if version.is_some_and(|version| version != CHORUS_VERSION) {
        let detail = format!("this receiver speaks {CHORUS_VERSION}");
        return Err(ReceiverReply::error(UNSUPPORTED_VERSION, detail));
    }
    Envelope::parse(text).map_err(|e| invalid_envelope(&e))
}

fn invalid_envelope(error: &chorus_wire::Error) -> ReceiverReply {
    ReceiverReply::error(INVALID_ENVELOPE, error_detail(&error.message))
}

/// ENV-14 specifies `missing sender_culture`; other errors keep their text.
fn error_detail(message: &str) -> String {
    let plain = message.strip_prefix("envelope.").unwrap_or(message);
    match plain.strip_suffix(" is required") {
        Some(field) => format!("missing {field}"),
        None => plain.to_owned(),
    }
}

fn json_response(status: u16, reply: &ReceiverReply) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(reply).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Posts an envelope to a peer's endpoint and returns its reply. Retries up to `retries` times while the peer cannot be
/// reached.
pub async fn send_direct(url: &str, envelope: &Envelope, retries: u32) -> Result<ReceiverReply> {
    let body = format!(r#"{{"envelope":{}}}"#, envelope.to_json());
    let peer = HubClient::for_endpoint(url)?;
    let mut failures = 0;
    loop {
        let outcome = peer
            .send_call(http::ApiCall::post("", body.clone()))
            .await
            .and_then(|answer| read_reply(&answer));
        match outcome {
            Err(error) if error.is_transient() && failures < retries => failures += 1,
            Err(_) | Ok(_) => return outcome,
        }
        tokio::time::sleep(peer.backoff.delay_after(failures)).await;
    }
}

/// A protocol reply counts under a 2xx or a 4xx (R-23); anything else is no delivery.
fn read_reply(answer: &http::HttpAnswer) -> Result<ReceiverReply> {
    let reply = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
    match reply {
        Some(reply)
            if matches!(answer.status, 200..300 | 400..500)
                && ReceiverReply::is_protocol_reply(&reply) =>
        {
            serde_json::from_value(reply).map_err(|e| Error::Answer(e.to_string()))
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
