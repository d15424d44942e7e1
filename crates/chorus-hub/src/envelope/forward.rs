//! To the receiver's endpoint: one POST, one outcome, written down before it is told (R-23, R-38).

use crate::ops::happened;
use crate::store::{Mark, Txn, log, messages};
use crate::{Hub, Result, delivery::outgoing::Answer};
use bytes::Bytes;
use chorus_wire::Code;
use chorus_wire::message::Delivery;
use serde_json::{Value, json};

/// The body a receiver gets: `{"envelope":{…}}` and nothing else (TRN-17); an A2A message as it was sent.
pub(super) fn body(envelope: &str, wrapped: Option<&str>) -> Bytes {
    Bytes::from(format!(r#"{{"envelope":{}}}"#, wrapped.unwrap_or(envelope)))
}

/// Posts and settles. The request that waits may go away; the outcome is written down all the same.
pub(super) async fn forward(
    hub: &Hub,
    seq: i64,
    url: &str,
    envelope: &str,
    wrapped: Option<&str>,
) -> Result<Delivery> {
    let (hub, url, body) = (hub.clone(), url.to_owned(), body(envelope, wrapped));
    let task = tokio::spawn(async move {
        let delivery = match hub.outgoing().post(&url, &[], body).await {
            Ok(answer) => judge(&answer),
            Err(error) => Delivery::Failed {
                error_code: error.code().as_str().into(),
                detail: error.to_string(),
            },
        };
        settle(&hub, seq, delivery).await
    });
    task.await.map_err(chorus_wire::Error::internal)?
}

/// A protocol reply with 2xx or 4xx is an answer; everything else is a receiver that cannot be reached (R-23).
pub(super) fn judge(answer: &Answer) -> Delivery {
    match answer.protocol_reply() {
        Some(receiver_response) => Delivery::Delivered { receiver_response },
        None => Delivery::Failed {
            error_code: Code::AgentUnreachable.as_str().into(),
            detail: format!(
                "the receiver's endpoint answered {} without a protocol reply",
                answer.status
            ),
        },
    }
}

/// Writes the outcome of a webhook down.
pub(super) async fn settle(hub: &Hub, seq: i64, delivery: Delivery) -> Result<Delivery> {
    let salt = hub.store().salt;
    hub.store()
        .write(async move |txn| {
            record(txn, salt, seq, &delivery).await?;
            Ok(delivery.clone())
        })
        .await
}

/// The outcome of the pending message at `seq`, with its activity.
pub(crate) async fn record(
    txn: &mut Txn<'_>,
    salt: u32,
    seq: i64,
    delivery: &Delivery,
) -> Result<()> {
    let Some(message) = messages::get(&txn.tx, seq).await? else {
        return Ok(());
    };
    let names = |extra: Value| {
        let entry = &message.entry;
        let trace_id = log::trace_id(entry.seq, entry.at, salt);
        let mut data = json!({"trace_id": trace_id, "sender_id": &*entry.actor_name, "receiver_id": &*entry.subject_name});
        if let (Some(data), Value::Object(extra)) = (data.as_object_mut(), extra) {
            data.extend(extra);
        }
        data
    };
    match delivery {
        Delivery::Delivered { receiver_response } => {
            if messages::settle(txn, seq, Mark::Pending, Mark::Webhook).await? {
                messages::respond(&txn.tx, seq, &receiver_response.to_string(), txn.now()).await?;
                happened(txn, "message_delivered", &names(json!({})));
            }
        }
        Delivery::Failed { error_code, detail } => {
            if messages::settle(txn, seq, Mark::Pending, Mark::Failed).await? {
                messages::fail(&txn.tx, seq, error_code, detail).await?;
                happened(
                    txn,
                    "message_failed",
                    &names(json!({"error_code": error_code, "detail": detail})),
                );
            }
        }
        Delivery::DeliveredSse | Delivery::Queued => {}
    }
    Ok(())
}
