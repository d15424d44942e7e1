//! Where a message stands: for its sender and its receiver, and for nobody else.

use super::history::via;
use crate::store::messages::{self, Message};
use crate::store::{Mark, log};
use crate::{Hub, Principal, Result};
use chorus_wire::Code;
use chorus_wire::message::{Delivery, Standing, Via};
use serde_json::Value;
use uuid::Uuid;

/// `GET /messages/{trace_id}`
pub async fn standing(who: &Principal, hub: &Hub, trace_id: &str) -> Result<Standing> {
    if matches!(who, Principal::Anyone) {
        return Err(Code::Unauthorized.into());
    }
    let message = find(hub, trace_id).await?.ok_or(Code::NotFound)?;
    let concerned = match who {
        Principal::Agent(agent) => {
            agent.id == message.entry.actor || agent.id == message.entry.subject
        }
        Principal::Operator(_) => true,
        Principal::Anyone => false,
    };
    // A stranger learns nothing, not even that it exists.
    if concerned {
        Ok(of(hub, message))
    } else {
        Err(Code::NotFound.into())
    }
}

/// The message of this trace id, if it is one that this hub gave out.
pub(super) async fn find(hub: &Hub, trace_id: &str) -> Result<Option<Message>> {
    let Ok(trace_id) = Uuid::try_parse(trace_id) else {
        return Ok(None);
    };
    let seq = log::place(&trace_id);
    let message = hub
        .store()
        .read(async move |tx| Ok(messages::get(tx, seq).await?))
        .await?;
    Ok(message.filter(|message| hub.trace_id(&message.entry) == trace_id))
}

pub(super) fn of(hub: &Hub, message: Message) -> Standing {
    let entry = &message.entry;
    let delivered_via = via(entry.via);
    let delivered_at = entry
        .delivered_at
        .or(matches!(delivered_via, Via::Sse).then_some(entry.at));
    let status = match (&message.response, delivered_at, delivered_via) {
        (Some(_), _, _) => "acknowledged",
        (None, Some(_), _) => "delivered",
        (None, None, Via::Failed) => "failed",
        (None, None, Via::Queued | Via::Sse | Via::Webhook) => "queued",
    };
    let (error_code, detail) = message.failure.unzip();
    Standing {
        trace_id: hub.trace_id(entry),
        status: status.to_owned(),
        sender_id: entry.actor_name.to_string(),
        receiver_id: entry.subject_name.to_string(),
        delivered_via,
        sent_at: entry.at,
        delivered_at,
        acknowledged_at: message.response.as_ref().map(|(_, at)| *at),
        receiver_response: message
            .response
            .as_ref()
            .and_then(|(response, _)| serde_json::from_str(response).ok()),
        error_code,
        detail,
    }
}

/// What the send was answered with; `None` while its webhook has not answered.
pub(super) fn first_outcome(message: &Message) -> Option<Delivery> {
    let response = || {
        message
            .response
            .as_ref()
            .and_then(|(text, _)| serde_json::from_str::<Value>(text).ok())
    };
    match message.entry.via {
        Some(Mark::Sse) => Some(Delivery::DeliveredSse),
        Some(Mark::Queued) | None => Some(Delivery::Queued),
        Some(Mark::Webhook) => Some(Delivery::Delivered {
            receiver_response: response().unwrap_or_default(),
        }),
        Some(Mark::Failed) => {
            let (error_code, detail) = message.failure.clone().unwrap_or_default();
            Some(Delivery::Failed { error_code, detail })
        }
        Some(Mark::Pending) => None,
    }
}
