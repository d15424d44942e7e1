//! Posting to a channel with a key: the owner and operators send as persons, other members as
//! agents.

use super::append::append_event;
use super::manage::find_actor;
use crate::context::HubContext;
use crate::identity::IdempotencyKey;
use crate::store::idempotency::{self, KeyUse};
use crate::store::{DbConnection, LogSeq, channel_entries};
use crate::{Principal, Result};
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::NewChannelMessage;
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::{Error, ErrorCode};

/// `POST /channels/{id}/messages`: returns the appended row. A repeat with the same idempotency key
/// and body gets the first row again.
pub async fn post_message(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    message: NewChannelMessage,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<ChannelRow> {
    let message = message.into_checked()?;
    if let Principal::Agent(agent) = principal {
        let octets =
            message.content.len() + message.parts.as_ref().map_or(0, |parts| parts.get().len());
        hub.identity()
            .charge_stored_bytes(agent.owner, octets)
            .await?;
    }
    let principal = principal.clone();
    let id = id.to_owned();
    let row = hub
        .store()
        .write(async move |txn| {
            let actor = find_actor(&txn.tx, &principal, &id).await?;
            let now = txn.now();
            // The scope includes the channel: a client that posts one message to several channels
            // may use the same key for each.
            let caller = format!("{} {id}", principal.idempotency_caller()?);
            if let Some(idempotency_key) = &idempotency_key {
                let clock = txn.expiry_clock();
                match idempotency::check_idempotency_key(&txn.tx, &caller, idempotency_key, clock)
                    .await?
                {
                    KeyUse::Unused => {}
                    KeyUse::SameRequest(seq) => return load_first_row(&txn.tx, seq).await,
                    KeyUse::DifferentRequest => return Err(ErrorCode::IdempotencyConflict.into()),
                }
            }
            principal.record_operator_act(txn, "post_message", &id);
            let event = ChannelEvent::Message {
                content: message.content.clone(),
                parts: message.parts.clone(),
            };
            let appended = append_event(
                txn,
                &actor.channel,
                &actor.sender(),
                CallbackPost { event, agent: None },
            )
            .await?;
            if let Some(idempotency_key) = &idempotency_key {
                idempotency::record_idempotency_key(
                    &txn.tx,
                    &caller,
                    idempotency_key,
                    appended.seq,
                    now,
                )
                .await?;
            }
            Ok(appended.row)
        })
        .await?;
    hub.wake_outbox();
    Ok(row)
}

async fn load_first_row(tx: &DbConnection<'_>, seq: LogSeq) -> Result<ChannelRow> {
    let entry = channel_entries::find_channel_entry(tx, seq).await?;
    let entry =
        entry.ok_or_else(|| Error::internal("an idempotency key speaks of a line that is gone"))?;
    let row: ChannelRow = serde_json::from_str(&entry.body).map_err(Error::internal)?;
    Ok(ChannelRow {
        cursor: Some(seq.to_u64()),
        timestamp: Some(entry.at),
        ..row
    })
}
