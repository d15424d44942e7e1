//! That the text of a message was shown to its receiver: recorded once, and told to the sender (R-81).

use super::status;
use crate::context::HubContext;
use crate::store::messages::{self, MessageRecord};
use crate::store::{Agent, EntryKind, LogSeq, NewLogEntry, WriteTxn, log};
use crate::{Principal, Result};
use chorus_wire::ErrorCode;
use chorus_wire::message::MessageStatus;
use std::time::Duration;
use uuid::Uuid;

/// `POST /agent/messages/{trace_id}/shown`: records it and returns the message's status.
pub async fn mark_shown(
    principal: &Principal,
    hub: &HubContext,
    trace_id: &str,
) -> Result<MessageStatus> {
    let receiver = principal.require_agent()?.clone();
    let message = status::find_message(hub, trace_id)
        .await?
        .filter(|message| message.entry.subject == receiver.id.into())
        .ok_or(ErrorCode::NotFound)?;
    if message.entry.shown_at.is_some() {
        return Ok(status::message_status(hub, message));
    }
    let seq = message.entry.seq;
    let trace_id = hub.entry_trace_id(&message.entry);
    let (message, waited) = hub
        .store()
        .write(async move |txn| {
            let waited = record_shown(txn, &receiver, seq, trace_id).await?;
            let message = messages::find_message(&txn.tx, seq)
                .await?
                .ok_or(ErrorCode::NotFound)?;
            Ok((message, waited))
        })
        .await?;
    record_waits(waited);
    Ok(status::message_status(hub, message))
}

/// Records that these messages are part of an answer to their receiver, who is the caller. Messages of others, and those
/// that were shown before, are left as they are.
pub async fn mark_all_shown(
    principal: &Principal,
    hub: &HubContext,
    trace_ids: Vec<Uuid>,
) -> Result<()> {
    if trace_ids.is_empty() {
        return Ok(());
    }
    let receiver = principal.require_agent()?.clone();
    let receiver_id = receiver.id;
    let salt = hub.store().trace_salt;
    // Read first: an inbox that is looked at again and again is not written again and again.
    let unseen = hub
        .store()
        .read(async move |tx| {
            let mut unseen = Vec::new();
            for trace_id in trace_ids {
                let seq = log::trace_id_seq(&trace_id);
                let is_unseen = |MessageRecord { entry, .. }: &MessageRecord| {
                    entry.subject == receiver_id.into()
                        && entry.shown_at.is_none()
                        && log::compute_trace_id(entry.seq, entry.at, salt) == trace_id
                };
                let found = messages::find_message(tx, seq).await?;
                if found.as_ref().is_some_and(is_unseen) {
                    unseen.push((seq, trace_id));
                }
            }
            Ok(unseen)
        })
        .await?;
    if unseen.is_empty() {
        return Ok(());
    }
    let waits = hub
        .store()
        .write(async move |txn| {
            let mut waits = Vec::with_capacity(unseen.len());
            for (seq, trace_id) in &unseen {
                waits.extend(record_shown(txn, &receiver, *seq, *trace_id).await?);
            }
            Ok(waits)
        })
        .await?;
    record_waits(waits);
    Ok(())
}

/// How long messages waited between their send and being shown. Called after the commit.
fn record_waits(waits: impl IntoIterator<Item = Duration>) {
    for waited in waits {
        metrics::histogram!("chorus_message_shown_seconds").record(waited);
    }
}

/// The first time stands, and the sender hears of it once. Returns how long the message waited for it. Whether a stream has carried the message is another fact (R-38).
async fn record_shown(
    txn: &mut WriteTxn<'_>,
    receiver: &Agent,
    seq: LogSeq,
    trace_id: Uuid,
) -> Result<Option<Duration>> {
    if !messages::mark_message_shown(txn, seq).await? {
        return Ok(None);
    }
    let message = messages::find_message(&txn.tx, seq)
        .await?
        .ok_or(ErrorCode::NotFound)?;
    txn.append_entry(NewLogEntry {
        subject: message.entry.actor,
        subject_name: message.entry.actor_name.clone(),
        kind: EntryKind::Shown,
        actor: receiver.id.into(),
        actor_name: receiver.agent_id.clone(),
        body: format!(
            r#"{{"trace_id":"{trace_id}","receiver_id":"{}"}}"#,
            receiver.agent_id
        )
        .into(),
        fallback: None,
    });
    let waited = txn.now().0.saturating_sub(message.entry.at.0).max(0);
    Ok(Some(Duration::from_micros(waited.unsigned_abs())))
}
