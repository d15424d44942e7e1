//! Forwards a message to its receiver's endpoint: one POST, whose outcome is stored before the
//! sender gets it (R-23, R-38).

use crate::Result;
use crate::context::HubContext;
use crate::delivery::{PendingWebhook, outgoing::WebhookAnswer};
use crate::identity::Agent;
use crate::store::messages::{self, MessageRecord};
use crate::store::{DeliveryState, LogEntry, LogSeq, WriteTxn, log, record_activity};
use crate::telemetry::{self, SpanKind};
use bytes::Bytes;
use chorus_wire::ErrorCode;
use chorus_wire::message::DeliveryOutcome;
use serde_json::{Value, json};

/// The body that a receiver gets: `{"envelope":{…}}` and nothing else (TRN-17). An A2A message
/// (`wrapped`) replaces the envelope and goes out as it was sent.
pub(super) fn webhook_body(envelope: &str, wrapped: Option<&str>) -> Bytes {
    Bytes::from(format!(r#"{{"envelope":{}}}"#, wrapped.unwrap_or(envelope)))
}

/// Posts a message and stores the outcome, if the message is still in this state. It runs on a task of its own, so that the outcome is
/// stored even when the sender's request is cancelled.
pub(super) async fn forward_message(
    hub: &HubContext,
    entry: &LogEntry,
    receiver: &Agent,
    url: &str,
    wrapped: Option<&str>,
    state: DeliveryState,
) -> Result<DeliveryOutcome> {
    let hub = hub.clone();
    let pending = hub.delivery().claim_webhook(entry.seq);
    let url = url.to_owned();
    let owner = receiver.owner;
    let body = webhook_body(&entry.body, wrapped);
    let message_id = hub.entry_trace_id(entry).to_string();
    let signed = hub.sign_for_agent(receiver, &message_id, &body);
    let span = telemetry::start_span("deliver message", SpanKind::Internal);
    let task = tokio::spawn(telemetry::run_in_span(span, async move {
        let answer = match signed {
            Ok(headers) => {
                hub.outgoing_client()
                    .post(owner.into(), &url, &headers.pairs(), body)
                    .await
            }
            Err(error) => Err(error),
        };
        let delivery = match answer {
            Ok(answer) => interpret_receiver_answer(&answer),
            Err(error) => DeliveryOutcome::Failed {
                error_code: error.code().as_str().into(),
                detail: error.to_string(),
            },
        };
        store_outcome(&hub, pending, state, delivery).await
    }));
    task.await.map_err(chorus_wire::Error::internal)?
}

/// Turns the receiver's answer into an outcome. A protocol reply with 2xx or 4xx is an answer;
/// everything else counts as a receiver that cannot be reached (R-23).
pub(super) fn interpret_receiver_answer(answer: &WebhookAnswer) -> DeliveryOutcome {
    match answer.protocol_reply() {
        Some(receiver_response) => DeliveryOutcome::Delivered { receiver_response },
        None => DeliveryOutcome::Failed {
            error_code: ErrorCode::AgentUnreachable.as_str().into(),
            detail: format!(
                "the receiver's endpoint answered {} without a protocol reply",
                answer.status
            ),
        },
    }
}

/// Stores the outcome of a webhook in a transaction of its own. While the database is away the sender is told to come back, and
/// the outcome is kept in memory and tried again until it is stored.
pub(super) async fn store_outcome(
    hub: &HubContext,
    pending: PendingWebhook,
    state: DeliveryState,
    delivery: DeliveryOutcome,
) -> Result<DeliveryOutcome> {
    let is_failure = matches!(delivery, DeliveryOutcome::Failed { .. });
    let label = if is_failure { "failed" } else { "delivered" };
    telemetry::set_outcome(label, is_failure);
    let salt = hub.store().trace_salt;
    let seq = pending.seq;
    let stored = delivery.clone();
    let store_once =
        async move |txn: &mut WriteTxn<'_>| record_outcome(txn, salt, seq, state, &stored).await;
    match hub.store().write(store_once.clone()).await {
        Ok(()) => Ok(delivery),
        Err(error) if error.code == ErrorCode::Unavailable => {
            tracing::warn!(
                cause = error.cause,
                "the outcome of a webhook is not stored yet; it will be tried again"
            );
            let hub = hub.clone();
            tokio::spawn(async move {
                let stored = hub.store().write_until_done(store_once).await;
                if let Err(error) = stored {
                    tracing::error!(%error, cause = error.cause, "the outcome of a webhook was not stored");
                }
                drop(pending);
            });
            Err(error)
        }
        Err(error) => Err(error),
    }
}

const INTERRUPTED_DETAIL: &str = "the hub stopped before the receiver's endpoint answered";

/// Records that the hub of a pending message stopped, or was cut off, before it could store an outcome. It is an assumption: the
/// true outcome replaces it, should it come after all.
pub(crate) async fn record_interruption(
    txn: &mut WriteTxn<'_>,
    salt: u32,
    seq: LogSeq,
) -> Result<()> {
    let interrupted = DeliveryOutcome::Failed {
        error_code: ErrorCode::AgentUnreachable.as_str().into(),
        detail: INTERRUPTED_DETAIL.into(),
    };
    match messages::find_message(&txn.tx, seq).await? {
        Some(message) => settle_pending(txn, salt, &message, &interrupted).await,
        None => Ok(()),
    }
}

/// Stores the outcome of the message with the sequence `seq`, which was pending, or had failed and was posted again.
async fn record_outcome(
    txn: &mut WriteTxn<'_>,
    salt: u32,
    seq: LogSeq,
    state: DeliveryState,
    delivery: &DeliveryOutcome,
) -> Result<()> {
    let Some(message) = messages::find_message(&txn.tx, seq).await? else {
        return Ok(());
    };
    let is_assumed = message
        .failure
        .as_ref()
        .is_some_and(|(_, detail)| detail == INTERRUPTED_DETAIL);
    if is_assumed || state == DeliveryState::Failed {
        messages::withdraw_failure(txn, seq).await?;
    }
    settle_pending(txn, salt, &message, delivery).await
}

/// Changes the delivery state of a pending message, and records the activity. A message that is not pending stays as it is.
async fn settle_pending(
    txn: &mut WriteTxn<'_>,
    salt: u32,
    message: &MessageRecord,
    delivery: &DeliveryOutcome,
) -> Result<()> {
    let seq = message.entry.seq;
    let activity_data = |extra: Value| {
        let entry = &message.entry;
        let trace_id = log::compute_trace_id(entry.seq, entry.at, salt);
        let mut data = json!({"trace_id": trace_id, "sender_id": &*entry.actor_name, "receiver_id": &*entry.subject_name});
        if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
            data.extend(extra);
        }
        data
    };
    match delivery {
        DeliveryOutcome::Delivered { receiver_response } => {
            let state = DeliveryState::Pending;
            if messages::change_delivery_state(txn, seq, state, DeliveryState::Webhook).await? {
                messages::insert_response(&txn.tx, seq, &receiver_response.to_string(), txn.now())
                    .await?;
                record_activity(txn, "message_delivered", &activity_data(json!({})));
            }
        }
        DeliveryOutcome::Failed { error_code, detail } => {
            let state = DeliveryState::Pending;
            if messages::change_delivery_state(txn, seq, state, DeliveryState::Failed).await? {
                messages::insert_failure(&txn.tx, seq, error_code, detail).await?;
                record_activity(
                    txn,
                    "message_failed",
                    &activity_data(json!({"error_code": error_code, "detail": detail})),
                );
            }
        }
        DeliveryOutcome::DeliveredSse | DeliveryOutcome::Queued => {}
    }
    Ok(())
}
