//! Posting with a key: the owner's and an operator's word is a person's, a member's an agent's.

use super::rooms::seat;
use super::say::say;
use crate::identity::Idempotency;
use crate::store::idempotency::{self, Seen};
use crate::store::{Tx, channels};
use crate::{Hub, Principal, Result};
use chorus_wire::channel::event::{Callback, Event};
use chorus_wire::channel::room::NewMessage;
use chorus_wire::channel::row::Row;
use chorus_wire::{Code, Error};

/// `POST /channels/{id}/messages`: the line that it became; the same key and body get the first line again.
pub async fn post(
    who: &Principal,
    hub: &Hub,
    id: &str,
    message: NewMessage,
    once: Option<Idempotency>,
) -> Result<Row> {
    let message = message.checked()?;
    let (who, id) = (who.clone(), id.to_owned());
    let row = hub
        .store()
        .write(async move |txn| {
            let seat = seat(&txn.tx, &who, &id).await?;
            let now = txn.now();
            // Per room too: a key is used again for another room by whoever posts one thing to several.
            let caller = format!("{} {id}", who.caller()?);
            if let Some(once) = &once {
                match idempotency::look(&txn.tx, &caller, once, now).await? {
                    Seen::New => {}
                    Seen::Same(seq) => return again(&txn.tx, seq).await,
                    Seen::Other => return Err(Code::IdempotencyConflict.into()),
                }
            }
            let event = Event::Message {
                content: message.content.clone(),
                parts: message.parts.clone(),
            };
            let line = say(
                txn,
                &seat.room,
                &seat.speaker(),
                Callback { event, agent: None },
            )
            .await?;
            if let Some(once) = &once {
                idempotency::keep(&txn.tx, &caller, once, line.seq, now).await?;
            }
            Ok(line.row)
        })
        .await?;
    hub.owes();
    Ok(row)
}

async fn again(tx: &Tx<'_>, seq: i64) -> Result<Row> {
    let entry = channels::line(tx, seq).await?;
    let entry =
        entry.ok_or_else(|| Error::internal("an idempotency key speaks of a line that is gone"))?;
    let row: Row = serde_json::from_str(&entry.body).map_err(Error::internal)?;
    Ok(Row {
        cursor: Some(seq as u64),
        timestamp: Some(entry.at),
        ..row
    })
}
