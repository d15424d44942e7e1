//! What members post back: one event at a time, in the order in which it comes, for as long as the callback is good.

use super::say::{Speaker, say};
use super::tokens::{self, Pass};
use super::{loops, rooms};
use crate::identity::{Idempotency, hash};
use crate::store::idempotency::{self, Seen};
use crate::store::{Txn, channels};
use crate::{Hub, Principal, Result};
use chorus_wire::channel::event::{Callback, Event};
use chorus_wire::channel::mention;
use chorus_wire::channel::room::Via;
use chorus_wire::channel::standing::Standing;
use chorus_wire::{Code, Error, secret::Secret};

impl Pass {
    /// As this member speaks with this credential: an agent's word, a step after what it came with.
    pub(crate) fn speaker(&self) -> Speaker {
        Speaker::agent(&self.member, loops::next_turn(self.turn, self.member.turn))
    }
}

/// A callback that was good when it was looked up.
#[derive(Clone, Debug)]
pub struct Door {
    channel: String,
    hash: [u8; 32],
    member: i64,
}

impl Door {
    /// Before anything of the body is read: whoever guesses learns nothing, whatever it sends.
    pub async fn find(hub: &Hub, channel: &str, token: &Secret) -> Result<Self> {
        let (hash, id, now) = (hash(token.expose()), channel.to_owned(), hub.clock().now());
        let pass = hub
            .store()
            .read(async move |tx| tokens::callback(tx, &id, &hash, now).await)
            .await?;
        Ok(Self {
            channel: channel.to_owned(),
            hash,
            member: pass.member.id,
        })
    }

    /// Tells one member from another, for whoever counts.
    pub fn number(&self) -> i64 {
        self.member
    }

    /// `POST /channels/{id}/inbox/{tok_…}`, or one line of it. The same key and event are heard once.
    pub async fn hear(&self, hub: &Hub, event: &[u8], once: Option<Idempotency>) -> Result<()> {
        let (door, event) = (self.clone(), Callback::parse(event)?);
        let said = matches!(event.event, Event::Message { .. });
        hub.store()
            .write(async move |txn| door.say(txn, event.clone(), once.as_ref()).await)
            .await?;
        if said {
            hub.owes();
        }
        Ok(())
    }

    async fn say(
        &self,
        txn: &mut Txn<'_>,
        event: Callback,
        once: Option<&Idempotency>,
    ) -> Result<()> {
        let now = txn.now();
        // Asked again here: what was revoked meanwhile is revoked.
        let pass = tokens::callback(&txn.tx, &self.channel, &self.hash, now).await?;
        // By the member: an event that is posted again may come with the callback of a later attempt.
        let caller = format!("member {}", pass.member.id);
        if let Some(once) = once {
            match idempotency::look(&txn.tx, &caller, once, now).await? {
                Seen::New => {}
                Seen::Same(_) => return Ok(()),
                Seen::Other => return Err(Code::IdempotencyConflict.into()),
            }
        }
        let line = say(txn, &pass.room, &pass.speaker(), event).await?;
        if let Some(once) = once {
            idempotency::keep(&txn.tx, &caller, once, line.seq, now).await?;
        }
        Ok(())
    }
}

/// `POST /channels/{id}/members/{name}/callback`: a callback for what answers nothing, in the place of the one before.
pub async fn standing(who: &Principal, hub: &Hub, id: &str, name: &str) -> Result<Standing> {
    let (who, id, folded) = (who.clone(), id.to_owned(), mention::fold(name));
    let callback = hub
        .store()
        .write(async move |txn| {
            let seat = rooms::seat(&txn.tx, &who, &id).await?;
            let member = channels::called(&txn.tx, seat.room.id, &folded).await?;
            let member = member.ok_or_else(|| {
                Error::new(Code::NotFound, "nobody of that name is in the channel")
            })?;
            if seat.member.as_ref().is_none_or(|mine| mine.id != member.id) {
                seat.may_change()?;
            }
            if member.via == Via::Owner {
                // What comes by a callback is an agent's word; the owner's is a person's.
                return Err(Error::new(
                    Code::Conflict,
                    "the owner speaks with its key, not by a callback",
                ));
            }
            Ok(tokens::stand(txn, &seat.room, member.id).await?)
        })
        .await?;
    Ok(Standing { callback })
}
