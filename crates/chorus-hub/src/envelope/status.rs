//! Message status, for the message's sender and receiver and for operators only.

use super::history::delivered_via;
use crate::context::HubContext;
use crate::store::messages::{self, MessageRecord};
use crate::store::{DeliveryState, SubjectId, log};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::message::{DeliveredVia, DeliveryOutcome, MessageStatus};
use serde_json::Value;
use uuid::Uuid;

/// `GET /messages/{trace_id}`
pub async fn get_message_status(
    principal: &Principal,
    hub: &HubContext,
    trace_id: &str,
) -> Result<MessageStatus> {
    if matches!(principal, Principal::Anonymous) {
        return Err(ErrorCode::Unauthorized.into());
    }
    let message = find_message(hub, trace_id)
        .await?
        .ok_or(ErrorCode::NotFound)?;
    let is_party = match principal {
        Principal::Agent(agent) => {
            let id = SubjectId::from(agent.id);
            id == message.entry.actor || id == message.entry.subject
        }
        Principal::Operator(_) => true,
        Principal::Anonymous => false,
    };
    // Other agents get 404, so that they do not learn that the message exists.
    if is_party {
        Ok(message_status(hub, message))
    } else {
        Err(ErrorCode::NotFound.into())
    }
}

/// The message with this trace id; `None` for an id that this hub did not issue.
pub(super) async fn find_message(
    hub: &HubContext,
    trace_id: &str,
) -> Result<Option<MessageRecord>> {
    let Ok(trace_id) = Uuid::try_parse(trace_id) else {
        return Ok(None);
    };
    let seq = log::trace_id_seq(&trace_id);
    let message = hub
        .store()
        .read(async move |tx| Ok(messages::find_message(tx, seq).await?))
        .await?;
    Ok(message.filter(|message| hub.entry_trace_id(&message.entry) == trace_id))
}

pub(super) fn message_status(hub: &HubContext, message: MessageRecord) -> MessageStatus {
    let entry = &message.entry;
    let delivered_via = delivered_via(entry.delivery);
    let delivered_at = entry
        .delivered_at
        .or(matches!(delivered_via, DeliveredVia::Sse).then_some(entry.at));
    let status = match (&message.response, delivered_at, delivered_via) {
        (Some(_), _, _) => "acknowledged",
        (None, Some(_), _) => "delivered",
        (None, None, DeliveredVia::Failed) => "failed",
        (None, None, DeliveredVia::Queued | DeliveredVia::Sse | DeliveredVia::Webhook) => "queued",
    };
    let (error_code, detail) = message.failure.unzip();
    MessageStatus {
        trace_id: hub.entry_trace_id(entry),
        status: status.to_owned(),
        sender_id: entry.actor_name.to_string(),
        receiver_id: entry.subject_name.to_string(),
        delivered_via,
        sent_at: entry.at,
        delivered_at,
        shown_at: entry.shown_at,
        acknowledged_at: message.response.as_ref().map(|(_, at)| *at),
        receiver_response: message
            .response
            .as_ref()
            .and_then(|(response, _)| serde_json::from_str(response).ok()),
        error_code,
        detail,
    }
}

/// The outcome with which the send was answered; `None` while the webhook has not answered.
pub(super) fn first_outcome(message: &MessageRecord) -> Option<DeliveryOutcome> {
    let response = || {
        message
            .response
            .as_ref()
            .and_then(|(text, _)| serde_json::from_str::<Value>(text).ok())
    };
    match message.entry.delivery {
        Some(DeliveryState::Sse) => Some(DeliveryOutcome::DeliveredSse),
        Some(DeliveryState::Queued) | None => Some(DeliveryOutcome::Queued),
        Some(DeliveryState::Webhook) => Some(DeliveryOutcome::Delivered {
            receiver_response: response().unwrap_or_default(),
        }),
        Some(DeliveryState::Failed) => {
            let (error_code, detail) = message.failure.clone().unwrap_or_default();
            Some(DeliveryOutcome::Failed { error_code, detail })
        }
        Some(DeliveryState::Pending) => None,
    }
}
