//! Whoever comes with the token of a delivery: one member in one room, until the token ends or the member goes.

use super::history::{self, Lines};
use super::roster;
use super::say::say;
use super::tokens::{self, Pass};
use crate::identity::hash;
use crate::store::Txn;
use crate::{Hub, Result};
use chorus_wire::channel::event::{Callback, Event};
use chorus_wire::channel::room::{Member, NewMessage};
use chorus_wire::channel::row::Row;
use chorus_wire::{Error, limits};
use serde_json::value::RawValue;

/// A token that was good when the request came.
#[derive(Clone, Debug)]
pub struct Guest {
    hash: [u8; 32],
    pub(super) pass: Pass,
}

impl Guest {
    /// Whatever is wrong with the token, it is the same refusal.
    pub async fn open(hub: &Hub, channel: &str, bearer: &str) -> Result<Self> {
        Ok(Self {
            hash: hash(bearer),
            pass: tokens::open(hub, channel, bearer).await?,
        })
    }

    /// Tells one member from another, for whoever counts.
    pub fn number(&self) -> i64 {
        self.pass.number()
    }

    pub fn channel_id(&self) -> &str {
        &self.pass.room.public_id
    }

    pub fn channel_name(&self) -> &str {
        &self.pass.room.name
    }

    /// What the member is called in the room.
    pub fn name(&self) -> &str {
        &self.pass.member.name
    }

    /// Asked again where something is written: what was revoked meanwhile is revoked.
    pub(super) async fn enter(&self, txn: &Txn<'_>) -> Result<Pass> {
        tokens::enter(&txn.tx, &self.pass.room.public_id, &self.hash, txn.now()).await
    }
}

/// `read_history`
pub async fn read_history(
    guest: &Guest,
    hub: &Hub,
    lines: Lines,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    history::of(hub, guest.pass.room.id, lines, limit).await
}

/// `get_roster`
pub async fn get_roster(guest: &Guest, hub: &Hub) -> Result<Vec<Member>> {
    roster::of(hub, guest.pass.room.id).await
}

/// `send_message`: an agent's word.
pub async fn send_message(guest: &Guest, hub: &Hub, message: NewMessage) -> Result<Row> {
    let NewMessage { content, parts } = message.checked()?;
    tell(guest, hub, Event::Message { content, parts }).await
}

/// `set_status`; an empty one takes it away.
pub async fn set_status(guest: &Guest, hub: &Hub, status: String) -> Result<Row> {
    if status.chars().count() > limits::LABEL_CHARS || status.contains(char::is_control) {
        let said = format!(
            "status must be one line of at most {} characters",
            limits::LABEL_CHARS
        );
        return Err(Error::validation(said));
    }
    tell(guest, hub, Event::Status { status }).await
}

async fn tell(guest: &Guest, hub: &Hub, event: Event) -> Result<Row> {
    let guest = guest.clone();
    let row = hub
        .store()
        .write(async move |txn| {
            let pass = guest.enter(txn).await?;
            Ok(say(
                txn,
                &pass.room,
                &pass.speaker(),
                Callback {
                    event: event.clone(),
                    agent: None,
                },
            )
            .await?
            .row)
        })
        .await?;
    hub.owes();
    Ok(row)
}
