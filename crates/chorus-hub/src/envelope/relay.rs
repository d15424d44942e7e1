//! A streamed send: the receiver's own stream, relayed to the sender while the outcome is being made (R-29, TRN-52…54).

use super::forward;
use super::send::{Accepted, Outcome, accept, repeat, settled_live};
use crate::delivery::outgoing::{Events, StreamedAnswer};
use crate::identity::Idempotency;
use crate::{Hub, Principal, Result};
use bytes::Bytes;
use chorus_wire::message::{Delivery, SendRequest, Sent};
use chorus_wire::{Code, limits, sse};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

/// Events of the receiver that the sender has not taken yet; a sender that does not read slows only its own relay.
const UNREAD: usize = 64;

/// What a streamed send answers with.
pub enum Streamed {
    /// The receiver does not stream: the ordinary outcome.
    Whole(Outcome),
    /// SSE bytes as they are to be relayed (`chunk`, `done`, `error`).
    Relay(mpsc::Receiver<Bytes>),
}

/// `POST /messages` with `"stream": true`
pub async fn send_streaming(
    who: &Principal,
    hub: &Hub,
    request: SendRequest,
    once: Option<Idempotency>,
) -> Result<Streamed> {
    let (entry, receiver) = match accept(who, hub, &request, once).await? {
        Accepted::Before(seq) => return Ok(Streamed::Whole(repeat(hub, seq).await?)),
        Accepted::Now(entry, receiver) => (*entry, receiver),
    };
    let trace_id = hub.trace_id(&entry);
    if let Some(delivery) = settled_live(hub, &entry).await? {
        return Ok(Streamed::Whole(Outcome { trace_id, delivery }));
    }
    let Some(url) = receiver.endpoint.clone() else {
        return Ok(Streamed::Whole(Outcome {
            trace_id,
            delivery: Delivery::Queued,
        }));
    };
    let (hub, seq, body) = (
        hub.clone(),
        entry.seq,
        forward::body(&entry.body, request.wrapped.as_deref()),
    );
    let (to, relay) = mpsc::channel(UNREAD);
    let (first, opened) = tokio::sync::oneshot::channel();
    // On a task of its own, so that a sender who hangs up does not leave the message without an outcome.
    tokio::spawn(async move {
        let delivery = match hub.outgoing().post_streaming(&url, &[], body).await {
            Ok(StreamedAnswer::Events(events)) => {
                let _ = first.send(None);
                return run(&hub, seq, trace_id, *events, to).await;
            }
            Ok(StreamedAnswer::Whole(answer)) => forward::judge(&answer),
            Err(error) => Delivery::Failed {
                error_code: error.code().as_str().into(),
                detail: error.to_string(),
            },
        };
        let _ = first.send(Some(forward::settle(&hub, seq, delivery).await));
    });
    match opened.await.map_err(chorus_wire::Error::internal)? {
        None => Ok(Streamed::Relay(relay)),
        Some(delivery) => Ok(Streamed::Whole(Outcome {
            trace_id,
            delivery: delivery?,
        })),
    }
}

/// Relays until the final event, which decides the state: `done` is delivered, `error` or a broken stream is failed.
async fn run(hub: &Hub, seq: i64, trace_id: Uuid, mut events: Events, to: mpsc::Sender<Bytes>) {
    let failed = |code: Code, detail: String| Delivery::Failed {
        error_code: code.as_str().into(),
        detail,
    };
    let (delivery, said) = loop {
        match events.next().await {
            Some(Ok(event)) if event.name == "chunk" => {
                pass_on(&to, sse::event("chunk", None, &one_line(&event.data))).await
            }
            Some(Ok(event)) => {
                if let Some(end) = ending(&event) {
                    break end;
                }
            }
            Some(Err(error)) => break (failed(error.code(), error.to_string()), None),
            None => {
                let detail = "the receiver's stream ended without a final event".to_owned();
                break (failed(Code::AgentUnreachable, detail), None);
            }
        }
    };
    if let Err(error) = forward::settle(hub, seq, delivery.clone()).await {
        tracing::error!(%error, cause = error.cause, "the outcome of a streamed message was not written down");
    }
    pass_on(&to, final_event(&delivery, said, trace_id)).await;
}

/// A sender that is gone does not stop the receiver, and one that does not read loses what it does not read.
async fn pass_on(to: &mpsc::Sender<Bytes>, event: Bytes) {
    let _ = to.send_timeout(event, limits::WEBHOOK_DEADLINE).await;
}

/// What a final event says of the outcome, with what the receiver said in it; other events decide nothing.
fn ending(event: &sse::Event) -> Option<(Delivery, Option<Value>)> {
    match event.name.as_str() {
        "done" => {
            let full =
                serde_json::from_str(&event.data).unwrap_or(Value::String(event.data.clone()));
            Some((
                Delivery::Delivered {
                    receiver_response: json!({"status": "ok"}),
                },
                Some(full),
            ))
        }
        "error" => {
            let said: Value = serde_json::from_str(&event.data).unwrap_or_default();
            let text = |key: &str, most: usize| {
                // Control characters have no business in an error, and one of the databases refuses some of them.
                Some(
                    said.get(key)?
                        .as_str()?
                        .chars()
                        .filter(|c| !c.is_control())
                        .take(most)
                        .collect::<String>(),
                )
            };
            let error_code = text("code", limits::LABEL_CHARS)
                .unwrap_or_else(|| Code::AgentUnreachable.as_str().into());
            let detail = text("message", limits::DETAIL_CHARS);
            let detail =
                detail.unwrap_or_else(|| "the receiver ended its stream with an error".into());
            Some((Delivery::Failed { error_code, detail }, Some(said)))
        }
        _ => None,
    }
}

/// The receiver's final event with the ordinary outcome's keys beside its own.
fn final_event(delivery: &Delivery, said: Option<Value>, trace_id: Uuid) -> Bytes {
    let mut data = match said {
        Some(Value::Object(map)) => map,
        Some(other) => serde_json::Map::from_iter([("result".to_owned(), other)]),
        None => serde_json::Map::new(),
    };
    let name = match delivery {
        Delivery::Failed { error_code, detail } => {
            data.entry("code")
                .or_insert_with(|| error_code.as_str().into());
            data.entry("message")
                .or_insert_with(|| detail.as_str().into());
            "error"
        }
        Delivery::Delivered { .. } | Delivery::DeliveredSse | Delivery::Queued => "done",
    };
    if let Ok(Value::Object(sent)) = serde_json::to_value(Sent::new(delivery, trace_id)) {
        data.extend(sent);
    }
    sse::event(name, None, &Value::Object(data).to_string())
}

/// The data on one line: JSON is compacted, anything else becomes `{"text":…}`.
fn one_line(data: &str) -> String {
    match serde_json::from_str::<Value>(data) {
        Ok(value) => value.to_string(),
        Err(_) => json!({"text": data}).to_string(),
    }
}
