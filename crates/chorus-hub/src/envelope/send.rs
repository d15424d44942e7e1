//! Sending: who may, to whom, stored first, then told.

use super::{forward, standing};
use crate::identity::{self, Agent, Idempotency};
use crate::store::idempotency::{self, Seen};
use crate::store::{Entry, Kind, Mark, NewEntry, messages};
use crate::{Hub, Principal, Result};
use chorus_wire::envelope::Envelope;
use chorus_wire::identity::Name;
use chorus_wire::message::{Delivery, SendRequest};
use chorus_wire::{Code, Error, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// What a send answers with.
#[derive(Debug)]
pub struct Outcome {
    pub trace_id: Uuid,
    pub delivery: Delivery,
}

/// `POST /messages`
pub async fn send(
    who: &Principal,
    hub: &Hub,
    request: SendRequest,
    once: Option<Idempotency>,
) -> Result<Outcome> {
    match accept(who, hub, &request, once).await? {
        Accepted::Before(seq) => repeat(hub, seq).await,
        Accepted::Now(entry, receiver) => deliver(hub, *entry, &receiver, request.wrapped).await,
    }
}

/// A send that has been stored.
pub(super) enum Accepted {
    /// By an earlier request with the same key: the message at this place.
    Before(i64),
    Now(Box<Entry>, Arc<Agent>),
}

/// Everything up to the commit: after it the message is durable, whatever becomes of its delivery.
pub(super) async fn accept(
    who: &Principal,
    hub: &Hub,
    request: &SendRequest,
    once: Option<Idempotency>,
) -> Result<Accepted> {
    let sender = sender(who, hub, &request.envelope).await?;
    let caller = who.caller()?;
    if let Some(once) = &once
        && let Some(seq) = seen(hub, &caller, once).await?
    {
        // The first answer stands, even if its receiver is gone by now.
        return Ok(Accepted::Before(seq));
    }
    let receiver = identity::find(hub, &request.receiver)
        .await?
        .ok_or(Code::AgentNotFound)?;
    let new = NewEntry {
        subject: receiver.id,
        subject_name: receiver.agent_id.clone(),
        kind: Kind::Message,
        actor: sender.id,
        actor_name: sender.agent_id.clone(),
        body: request.envelope.to_json().into(),
        otherwise: Some(if receiver.endpoint.is_some() {
            Mark::Pending
        } else {
            Mark::Queued
        }),
    };
    let Some(once) = once else {
        return Ok(Accepted::Now(
            Box::new(hub.store().append(new).await?),
            receiver,
        ));
    };
    let (before, mut entries) = hub
        .store()
        .write_entries(async move |txn| {
            let now = txn.now();
            match idempotency::look(&txn.tx, &caller, &once, now).await? {
                Seen::Same(seq) => Ok(Some(seq)),
                Seen::Other => Err(Code::IdempotencyConflict.into()),
                Seen::New => {
                    let (seq, _) = txn.append(new.clone());
                    idempotency::keep(&txn.tx, &caller, &once, seq, now).await?;
                    Ok(None)
                }
            }
        })
        .await?;
    match (before, entries.pop()) {
        (Some(seq), _) => Ok(Accepted::Before(seq)),
        (None, Some(entry)) => Ok(Accepted::Now(Box::new(entry), receiver)),
        (None, None) => Err(Error::internal("a send was neither new nor known")),
    }
}

/// The envelope's sender, if this principal may speak for it.
async fn sender(who: &Principal, hub: &Hub, envelope: &Envelope) -> Result<Arc<Agent>> {
    match who {
        Principal::Anyone => Err(Code::Unauthorized.into()),
        Principal::Agent(agent) if *agent.agent_id == *envelope.sender_id().as_str() => {
            Ok(agent.clone())
        }
        Principal::Agent(_) => Err(Code::SenderMismatch.into()),
        Principal::Operator(_) => {
            let found = identity::find(hub, &Name::Address(envelope.sender_id().clone())).await?;
            found.ok_or_else(|| Code::SenderNotRegistered.into())
        }
    }
}

/// The place of the message that this key was used for.
async fn seen(hub: &Hub, caller: &str, once: &Idempotency) -> Result<Option<i64>> {
    let (caller, once, now) = (caller.to_owned(), once.clone(), hub.clock().now());
    match hub
        .store()
        .read(async move |tx| Ok(idempotency::look(tx, &caller, &once, now).await?))
        .await?
    {
        Seen::New => Ok(None),
        Seen::Same(seq) => Ok(Some(seq)),
        Seen::Other => Err(Code::IdempotencyConflict.into()),
    }
}

/// From a stored message to its outcome.
async fn deliver(
    hub: &Hub,
    entry: Entry,
    receiver: &Agent,
    wrapped: Option<String>,
) -> Result<Outcome> {
    let trace_id = hub.trace_id(&entry);
    let delivery = match settled_live(hub, &entry).await? {
        Some(delivery) => delivery,
        None => match &receiver.endpoint {
            Some(url) => {
                forward::forward(hub, entry.seq, url, &entry.body, wrapped.as_deref()).await?
            }
            None => Delivery::Queued,
        },
    };
    Ok(Outcome { trace_id, delivery })
}

/// What the publishing made of it; `None` when it must be forwarded, or waits without being marked so.
pub(super) async fn settled_live(hub: &Hub, entry: &Entry) -> Result<Option<Delivery>> {
    match (entry.via, entry.accepted) {
        (Some(Mark::Sse), true) => Ok(Some(Delivery::DeliveredSse)),
        // The stream that was draining at commit had gone when it was offered the message: it waits after all.
        (Some(Mark::Sse), false) => {
            mark(hub, entry.seq, Mark::Sse, Mark::Queued).await?;
            Ok(Some(Delivery::Queued))
        }
        // A stream opened between commit and publication: the inbox wins (TRN-18).
        (Some(Mark::Pending), true) => {
            mark(hub, entry.seq, Mark::Pending, Mark::Sse).await?;
            Ok(Some(Delivery::DeliveredSse))
        }
        (Some(Mark::Queued), true) => {
            mark(hub, entry.seq, Mark::Queued, Mark::Sse).await?;
            Ok(Some(Delivery::DeliveredSse))
        }
        (Some(Mark::Pending), false) => Ok(None),
        (Some(Mark::Queued | Mark::Webhook | Mark::Failed) | None, _) => Ok(Some(Delivery::Queued)),
    }
}

async fn mark(hub: &Hub, seq: i64, from: Mark, to: Mark) -> Result<()> {
    hub.store()
        .write(async move |txn| Ok(messages::settle(txn, seq, from, to).await.map(drop)?))
        .await
}

/// How often a repeated request looks whether the first one has its outcome: soon at first, then less and less.
const FIRST_LOOK: Duration = Duration::from_millis(25);
const LATER_LOOKS: Duration = Duration::from_secs(1);

/// The first answer again, also while the first request is still waiting for its webhook (failure 13).
pub(super) async fn repeat(hub: &Hub, seq: i64) -> Result<Outcome> {
    // No outcome takes longer than its webhook, whole or streamed.
    let until = Instant::now()
        + hub
            .options()
            .webhook_timeout
            .max(limits::WEBHOOK_STREAM_DEADLINE);
    let mut pause = FIRST_LOOK;
    while Instant::now() < until {
        let message = hub
            .store()
            .read(async move |tx| Ok(messages::get(tx, seq).await?))
            .await?;
        let message = message.ok_or_else(|| {
            Error::internal("an idempotency key speaks of a message that is gone")
        })?;
        if let Some(delivery) = standing::first_outcome(&message) {
            return Ok(Outcome {
                trace_id: hub.trace_id(&message.entry),
                delivery,
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LATER_LOOKS);
    }
    Err(Error::unavailable(
        "the first request with this key has no outcome yet",
    ))
}
