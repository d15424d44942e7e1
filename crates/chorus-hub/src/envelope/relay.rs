//! Streamed sends: the receiver's event stream is relayed to the sender while the message is being
//! delivered (R-29, TRN-52…54).

use super::forward;
use super::send::{
    AcceptedSend, SendOutcome, accept_send, await_first_outcome, settle_live_delivery,
};
use crate::context::HubContext;
use crate::delivery::PendingWebhook;
use crate::delivery::outgoing::{AnswerEvents, StreamedAnswer};
use crate::identity::IdempotencyKey;
use crate::store::DeliveryState;
use crate::telemetry::{self, SpanKind};
use crate::{Principal, Result};
use bytes::Bytes;
use chorus_wire::message::{DeliveryOutcome, SendReply, SendRequest};
use chorus_wire::{ErrorCode, limits, sse};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

/// Max events of the receiver that wait for the sender. A sender that does not read slows down only
/// its own relay.
const RELAY_BUFFER_EVENTS: usize = 64;

/// The answer to a streamed send.
pub enum StreamedSend {
    /// The receiver does not stream: the ordinary outcome.
    Finished(SendOutcome),
    /// SSE bytes for the sender (`chunk`, `done`, `error`).
    Relay(mpsc::Receiver<Bytes>),
}

/// `POST /messages` with `"stream": true`
pub async fn send_streaming(
    principal: &Principal,
    hub: &HubContext,
    request: SendRequest,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<StreamedSend> {
    let (entry, receiver) = match accept_send(principal, hub, &request, idempotency_key).await? {
        AcceptedSend::Repeated(seq) => {
            return Ok(StreamedSend::Finished(await_first_outcome(hub, seq).await?));
        }
        AcceptedSend::New(entry, receiver) => (*entry, receiver),
    };
    let trace_id = hub.entry_trace_id(&entry);
    if let Some(delivery) = settle_live_delivery(hub, &entry).await? {
        return Ok(StreamedSend::Finished(SendOutcome { trace_id, delivery }));
    }
    let Some(url) = receiver.endpoint.clone() else {
        return Ok(StreamedSend::Finished(SendOutcome {
            trace_id,
            delivery: DeliveryOutcome::Queued,
        }));
    };
    let hub = hub.clone();
    let pending = hub.delivery().claim_webhook(entry.seq);
    let receiver_owner = receiver.owner;
    let body = forward::webhook_body(&entry.body, request.a2a_message.as_deref());
    let signed = hub.sign_for_agent(&receiver, &trace_id.to_string(), &body);
    let (relay_sender, relay_receiver) = mpsc::channel(RELAY_BUFFER_EVENTS);
    let (first_sender, first_receiver) = tokio::sync::oneshot::channel();
    // On a task of its own, so that the message gets an outcome even when the sender disconnects.
    let span = telemetry::start_span("deliver message", SpanKind::Internal);
    tokio::spawn(telemetry::run_in_span(span, async move {
        let answer = match signed {
            Ok(headers) => {
                hub.outgoing_client()
                    .post_streaming(receiver_owner.into(), &url, &headers.pairs(), body)
                    .await
            }
            Err(error) => Err(error),
        };
        let delivery = match answer {
            Ok(StreamedAnswer::Events(events)) => {
                let _ = first_sender.send(None);
                return relay_events(&hub, pending, trace_id, *events, relay_sender).await;
            }
            Ok(StreamedAnswer::Whole(answer)) => forward::interpret_receiver_answer(&answer),
            Err(error) => DeliveryOutcome::Failed {
                error_code: error.code().as_str().into(),
                detail: error.to_string(),
            },
        };
        let state = DeliveryState::Pending;
        let stored = forward::store_outcome(&hub, pending, state, delivery).await;
        let _ = first_sender.send(Some(stored));
    }));
    match first_receiver.await.map_err(chorus_wire::Error::internal)? {
        None => Ok(StreamedSend::Relay(relay_receiver)),
        Some(delivery) => Ok(StreamedSend::Finished(SendOutcome {
            trace_id,
            delivery: delivery?,
        })),
    }
}

/// Relays events until the final one, which decides the delivery state: `done` means delivered,
/// `error` or a broken stream means failed.
async fn relay_events(
    hub: &HubContext,
    pending: PendingWebhook,
    trace_id: Uuid,
    mut events: AnswerEvents,
    relay_sender: mpsc::Sender<Bytes>,
) {
    let failed = |code: ErrorCode, detail: String| DeliveryOutcome::Failed {
        error_code: code.as_str().into(),
        detail,
    };
    let (delivery, receiver_data) = loop {
        match events.next_event().await {
            Some(Ok(event)) if event.name == "chunk" => {
                send_to_sender(
                    &relay_sender,
                    sse::format_event("chunk", None, &compact_data(&event.data)),
                )
                .await
            }
            Some(Ok(event)) => {
                if let Some(final_outcome) = parse_final_event(&event) {
                    break final_outcome;
                }
            }
            Some(Err(error)) => break (failed(error.code(), error.to_string()), None),
            None => {
                let detail = "the receiver's stream ended without a final event".to_owned();
                break (failed(ErrorCode::AgentUnreachable, detail), None);
            }
        }
    };
    let state = DeliveryState::Pending;
    if let Err(error) = forward::store_outcome(hub, pending, state, delivery.clone()).await {
        tracing::warn!(%error, cause = error.cause, "a sender hears an outcome that is not stored yet");
    }
    send_to_sender(
        &relay_sender,
        render_final_event(&delivery, receiver_data, trace_id),
    )
    .await;
}

/// Sends an event to the sender. A sender that has disconnected does not stop the receiver, and one
/// that does not read in time loses the event.
async fn send_to_sender(relay_sender: &mpsc::Sender<Bytes>, event: Bytes) {
    let _ = relay_sender
        .send_timeout(event, limits::WEBHOOK_DEADLINE)
        .await;
}

/// The outcome and the receiver's data of a final event; `None` for any other event.
fn parse_final_event(event: &sse::SseEvent) -> Option<(DeliveryOutcome, Option<Value>)> {
    match event.name.as_str() {
        "done" => {
            let receiver_data =
                serde_json::from_str(&event.data).unwrap_or(Value::String(event.data.clone()));
            Some((
                DeliveryOutcome::Delivered {
                    receiver_response: json!({"status": "ok"}),
                },
                Some(receiver_data),
            ))
        }
        "error" => {
            let receiver_data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            let text = |key: &str, max_chars: usize| {
                // Control characters do not belong in an error text, and PostgreSQL refuses NUL.
                Some(
                    receiver_data
                        .get(key)?
                        .as_str()?
                        .chars()
                        .filter(|c| !c.is_control())
                        .take(max_chars)
                        .collect::<String>(),
                )
            };
            let error_code = text("code", limits::LABEL_CHARS)
                .unwrap_or_else(|| ErrorCode::AgentUnreachable.as_str().into());
            let detail = text("message", limits::DETAIL_CHARS);
            let detail =
                detail.unwrap_or_else(|| "the receiver ended its stream with an error".into());
            Some((
                DeliveryOutcome::Failed { error_code, detail },
                Some(receiver_data),
            ))
        }
        _ => None,
    }
}

/// The receiver's final event, with the keys of an ordinary send reply added to its data.
fn render_final_event(
    delivery: &DeliveryOutcome,
    receiver_data: Option<Value>,
    trace_id: Uuid,
) -> Bytes {
    let mut data = match receiver_data {
        Some(Value::Object(map)) => map,
        Some(other) => serde_json::Map::from_iter([("result".to_owned(), other)]),
        None => serde_json::Map::new(),
    };
    let name = match delivery {
        DeliveryOutcome::Failed { error_code, detail } => {
            data.entry("code")
                .or_insert_with(|| error_code.as_str().into());
            data.entry("message")
                .or_insert_with(|| detail.as_str().into());
            "error"
        }
        DeliveryOutcome::Delivered { .. }
        | DeliveryOutcome::DeliveredSse
        | DeliveryOutcome::Queued => "done",
    };
    if let Ok(Value::Object(sent)) = serde_json::to_value(SendReply::new(delivery, trace_id)) {
        data.extend(sent);
    }
    sse::format_event(name, None, &Value::Object(data).to_string())
}

/// Puts the data on one line: JSON is compacted, anything else becomes `{"text":…}`.
fn compact_data(data: &str) -> String {
    match serde_json::from_str::<Value>(data) {
        Ok(value) => value.to_string(),
        Err(_) => json!({"text": data}).to_string(),
    }
}
