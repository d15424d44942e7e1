//! The receiver's response to a message that came by stream: stored once, and sent to the sender as
//! a receipt (R-34).

use super::status;
use crate::context::HubContext;
use crate::store::{DeliveryState, EntryKind, NewLogEntry, messages};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::message::{MessageStatus, ReceiverReply};

/// `POST /agent/messages/{trace_id}/response`: stores the response and returns the message's
/// status.
pub async fn respond_to_message(
    principal: &Principal,
    hub: &HubContext,
    trace_id: &str,
    reply: ReceiverReply,
) -> Result<MessageStatus> {
    let receiver = principal.require_agent()?.clone();
    let message = status::find_message(hub, trace_id)
        .await?
        .filter(|message| message.entry.subject == receiver.id.into());
    let message = message.ok_or(ErrorCode::NotFound)?;
    let seq = message.entry.seq;
    let message_trace_id = hub.entry_trace_id(&message.entry);
    let message = hub
        .store()
        .write(async move |txn| {
            let message = messages::find_message(&txn.tx, seq)
                .await?
                .ok_or(ErrorCode::NotFound)?;
            if let Some((stored_reply, _)) = &message.response {
                // The first response stands (R-38): a repeat changes nothing, another one is
                // refused.
                let is_same_reply = serde_json::from_str::<ReceiverReply>(stored_reply)
                    .is_ok_and(|stored| stored == reply);
                return if is_same_reply {
                    Ok(message)
                } else {
                    Err(ErrorCode::ResponseConflict.into())
                };
            }
            let response = serde_json::to_string(&reply).map_err(chorus_wire::Error::internal)?;
            messages::insert_response(&txn.tx, seq, &response, txn.now()).await?;
            if message.entry.delivery == Some(DeliveryState::Queued) {
                messages::mark_messages_delivered(txn, &[seq]).await?;
            }
            txn.append_entry(NewLogEntry {
                subject: message.entry.actor,
                subject_name: message.entry.actor_name.clone(),
                kind: EntryKind::Receipt,
                actor: receiver.id.into(),
                actor_name: receiver.agent_id.clone(),
                body: format!(
                    r#"{{"trace_id":"{message_trace_id}","receiver_id":"{}","response":{response}}}"#,
                    receiver.agent_id
                )
                .into(),
                fallback: None,
            });
            messages::find_message(&txn.tx, seq)
                .await?
                .ok_or_else(|| ErrorCode::NotFound.into())
        })
        .await?;
    Ok(status::message_status(hub, message))
}
