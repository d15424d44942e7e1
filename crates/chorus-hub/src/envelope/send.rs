//! Sending a message: checks sender and receiver, stores the message, then delivers it (R-06, R-22,
//!

use super::{forward, status};
use crate::context::HubContext;
use crate::identity::{self, Agent, IdempotencyKey};
use crate::store::idempotency::{self, KeyUse};
use crate::store::{
    DeliveryState, EntryKind, LogEntry, LogSeq, NewLogEntry, WriteTxn, contacts, messages,
};
use crate::{Principal, Result, telemetry};
use chorus_wire::envelope::Envelope;
use chorus_wire::identity::AgentName;
use chorus_wire::message::{DeliveryOutcome, SendRequest};
use chorus_wire::{Error, ErrorCode, limits};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// The answer to a send.
#[derive(Debug)]
pub struct SendOutcome {
    pub trace_id: Uuid,
    pub delivery: DeliveryOutcome,
}

/// What a request with an idempotency key that was used before comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedSend {
    /// The first answer again.
    FirstOutcome,
    /// The same, but a message whose endpoint could not be reached is posted again. It stays one message.
    RetryFailed,
}

/// `POST /messages`
pub async fn send_envelope(
    principal: &Principal,
    hub: &HubContext,
    request: SendRequest,
    idempotency_key: Option<IdempotencyKey>,
    repeated: RepeatedSend,
) -> Result<SendOutcome> {
    match accept_send(principal, hub, &request, idempotency_key).await? {
        AcceptedSend::Repeated(seq) => {
            // On the heap, as all that few sends wait for: every other one would carry the room for it.
            let first = Box::pin(await_first_outcome(hub, seq)).await?;
            match (repeated, &first.delivery) {
                (RepeatedSend::RetryFailed, DeliveryOutcome::Failed { .. }) => {
                    Box::pin(retry_failed(principal, hub, &request, seq, first)).await
                }
                (
                    RepeatedSend::FirstOutcome | RepeatedSend::RetryFailed,
                    DeliveryOutcome::Failed { .. }
                    | DeliveryOutcome::Delivered { .. }
                    | DeliveryOutcome::DeliveredSse
                    | DeliveryOutcome::Queued,
                ) => Ok(first),
            }
        }
        AcceptedSend::New(entry, receiver) => {
            let sent = deliver_message(hub, *entry, &receiver, request.a2a_message).await?;
            count_sent(&sent.delivery);
            name_outcome(&sent.delivery);
            Ok(sent)
        }
    }
}

/// The counters of sent messages, by what the sender was told.
struct SentCounters {
    delivered: metrics::Counter,
    queued: metrics::Counter,
    failed: metrics::Counter,
}

/// Looked up once: this runs for every message, and the registry of meters has a lock.
static SENT_COUNTERS: LazyLock<SentCounters> = LazyLock::new(|| SentCounters {
    delivered: metrics::counter!("chorus_messages_total", "delivery" => "delivered"),
    queued: metrics::counter!("chorus_messages_total", "delivery" => "queued"),
    failed: metrics::counter!("chorus_messages_total", "delivery" => "failed"),
});

fn count_sent(delivery: &DeliveryOutcome) {
    let counters = &*SENT_COUNTERS;
    match delivery {
        DeliveryOutcome::Delivered { .. } | DeliveryOutcome::DeliveredSse => &counters.delivered,
        DeliveryOutcome::Queued => &counters.queued,
        DeliveryOutcome::Failed { .. } => &counters.failed,
    }
    .increment(1);
}

/// Puts the outcome into the span of the request, which has succeeded either way.
fn name_outcome(delivery: &DeliveryOutcome) {
    let label = match delivery {
        DeliveryOutcome::Delivered { .. } => "delivered",
        DeliveryOutcome::DeliveredSse => "delivered_sse",
        DeliveryOutcome::Queued => "queued",
        DeliveryOutcome::Failed { .. } => "failed",
    };
    telemetry::set_outcome(label, false);
}

/// Posts a failed message again to the endpoint that its receiver has now. What the first request was checked for is checked
/// again: the receiver may have left, or blocked the sender.
async fn retry_failed(
    principal: &Principal,
    hub: &HubContext,
    request: &SendRequest,
    seq: LogSeq,
    first: SendOutcome,
) -> Result<SendOutcome> {
    let sender = resolve_sender(principal, hub, &request.envelope).await?;
    let receiver = identity::find_agent(hub.identity(), &request.receiver)
        .await?
        .ok_or(ErrorCode::AgentNotFound)?;
    hub.identity()
        .check_contact(receiver.id, receiver.contact_limits, &sender)
        .await?;
    let message = hub
        .store()
        .read(async move |tx| Ok(messages::find_message(tx, seq).await?))
        .await?;
    let (Some(url), Some(message)) = (receiver.endpoint.as_deref(), message) else {
        return Ok(first);
    };
    let wrapped = request.a2a_message.as_deref();
    let state = DeliveryState::Failed;
    let delivery =
        forward::forward_message(hub, &message.entry, &receiver, url, wrapped, state).await?;
    Ok(SendOutcome { delivery, ..first })
}

/// A send whose message is stored.
pub(super) enum AcceptedSend {
    /// An earlier request with the same idempotency key stored the message with this sequence.
    Repeated(LogSeq),
    New(Box<LogEntry>, Arc<Agent>),
}

/// Does everything up to the commit. After it the message is durable, whatever happens to its
/// delivery.
pub(super) async fn accept_send(
    principal: &Principal,
    hub: &HubContext,
    request: &SendRequest,
    idempotency_key: Option<IdempotencyKey>,
) -> Result<AcceptedSend> {
    let sender = resolve_sender(principal, hub, &request.envelope).await?;
    let keyed = match idempotency_key {
        Some(key) => Some((principal.idempotency_caller()?, key)),
        None => None,
    };
    if let Some((caller, key)) = &keyed
        && let Some(seq) = find_repeated(hub, caller, key).await?
    {
        // The first answer stands, even if the receiver has unregistered since.
        return Ok(AcceptedSend::Repeated(seq));
    }
    let receiver = identity::find_agent(hub.identity(), &request.receiver)
        .await?
        .ok_or(ErrorCode::AgentNotFound)?;
    hub.identity()
        .check_contact(receiver.id, receiver.contact_limits, &sender)
        .await?;
    // an agent that takes messages only from contacts may be answered by those it writes to.
    let new_contact = sender
        .contact_limits
        .contacts_only
        .then_some((sender.id, receiver.id));
    let body: Arc<str> = request.envelope.to_json().into();
    hub.identity()
        .charge_stored_bytes(sender.owner, body.len())
        .await?;
    let new_entry = NewLogEntry {
        subject: receiver.id.into(),
        subject_name: receiver.agent_id.clone(),
        kind: EntryKind::Message,
        actor: sender.id.into(),
        actor_name: sender.agent_id.clone(),
        body,
        fallback: Some(if receiver.endpoint.is_some() {
            DeliveryState::Pending
        } else {
            DeliveryState::Queued
        }),
    };
    let is_operator = matches!(principal, Principal::Operator(_));
    if keyed.is_none() && new_contact.is_none() && !is_operator {
        return Ok(AcceptedSend::New(
            Box::new(hub.store().append_entry(new_entry).await?),
            receiver,
        ));
    }
    let principal = principal.clone();
    let (repeated_seq, mut entries) = hub
        .store()
        .write_entries(async move |txn| {
            if let Some((sender, receiver)) = new_contact {
                contacts::insert_correspondent(&txn.tx, sender, receiver).await?;
            }
            append_once(txn, &principal, keyed.as_ref(), &new_entry).await
        })
        .await?;
    match (repeated_seq, entries.pop()) {
        (Some(seq), _) => Ok(AcceptedSend::Repeated(seq)),
        (None, Some(entry)) => Ok(AcceptedSend::New(Box::new(entry), receiver)),
        (None, None) => Err(Error::internal("a send was neither new nor known")),
    }
}

/// Appends the message unless the idempotency key was used for it before; then its sequence. The message is the last entry of
/// the request.
async fn append_once(
    txn: &mut WriteTxn<'_>,
    principal: &Principal,
    keyed: Option<&(String, IdempotencyKey)>,
    new_entry: &NewLogEntry,
) -> Result<Option<LogSeq>> {
    let now = txn.now();
    if let Some((caller, key)) = keyed {
        let clock = txn.expiry_clock();
        match idempotency::check_idempotency_key(&txn.tx, caller, key, clock).await? {
            KeyUse::SameRequest(seq) => return Ok(Some(seq)),
            KeyUse::DifferentRequest => return Err(ErrorCode::IdempotencyConflict.into()),
            KeyUse::Unused => {}
        }
    }
    principal.record_operator_act(txn, "send_as", &new_entry.actor_name);
    let (seq, _) = txn.append_entry(new_entry.clone());
    if let Some((caller, key)) = keyed {
        idempotency::record_idempotency_key(&txn.tx, caller, key, seq, now).await?;
    }
    Ok(None)
}

/// The envelope's sender, if this principal may send as that agent.
async fn resolve_sender(
    principal: &Principal,
    hub: &HubContext,
    envelope: &Envelope,
) -> Result<Arc<Agent>> {
    match principal {
        Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(agent) if *agent.agent_id == *envelope.sender_id().as_str() => {
            Ok(agent.agent.clone())
        }
        Principal::Agent(_) => Err(ErrorCode::SenderMismatch.into()),
        Principal::Operator(_) => {
            let found = identity::find_agent(
                hub.identity(),
                &AgentName::Address(envelope.sender_id().clone()),
            )
            .await?;
            found.ok_or_else(|| ErrorCode::SenderNotRegistered.into())
        }
    }
}

/// The sequence of the message for which this idempotency key was used.
async fn find_repeated(
    hub: &HubContext,
    caller: &str,
    idempotency_key: &IdempotencyKey,
) -> Result<Option<LogSeq>> {
    let caller = caller.to_owned();
    let idempotency_key = idempotency_key.clone();
    let clock = hub.expiry_clock();
    match hub
        .store()
        .read(async move |tx| {
            Ok(idempotency::check_idempotency_key(tx, &caller, &idempotency_key, clock).await?)
        })
        .await?
    {
        KeyUse::Unused => Ok(None),
        KeyUse::SameRequest(seq) => Ok(Some(seq)),
        KeyUse::DifferentRequest => Err(ErrorCode::IdempotencyConflict.into()),
    }
}

/// Delivers a stored message and returns its outcome.
async fn deliver_message(
    hub: &HubContext,
    entry: LogEntry,
    receiver: &Agent,
    wrapped: Option<String>,
) -> Result<SendOutcome> {
    let trace_id = hub.entry_trace_id(&entry);
    let delivery = match settle_live_delivery(hub, &entry).await? {
        Some(delivery) => delivery,
        None => match &receiver.endpoint {
            Some(url) => {
                let wrapped = wrapped.as_deref();
                let state = DeliveryState::Pending;
                let forwarding =
                    forward::forward_message(hub, &entry, receiver, url, wrapped, state);
                Box::pin(forwarding).await?
            }
            None => DeliveryOutcome::Queued,
        },
    };
    Ok(SendOutcome { trace_id, delivery })
}

/// The outcome after the entry was published to the receiver's streams; `None` when the message
/// must be forwarded to the endpoint.
pub(super) async fn settle_live_delivery(
    hub: &HubContext,
    entry: &LogEntry,
) -> Result<Option<DeliveryOutcome>> {
    match (entry.delivery, entry.accepted) {
        (Some(DeliveryState::Sse), true) => Ok(Some(DeliveryOutcome::DeliveredSse)),
        // The stream that was draining at commit was closed before publication: the message is
        // queued.
        (Some(DeliveryState::Sse), false) => {
            change_delivery_state(hub, entry.seq, DeliveryState::Sse, DeliveryState::Queued)
                .await?;
            Ok(Some(DeliveryOutcome::Queued))
        }
        // A stream opened between commit and publication: the inbox wins (TRN-18).
        (Some(DeliveryState::Pending), true) => {
            change_delivery_state(hub, entry.seq, DeliveryState::Pending, DeliveryState::Sse)
                .await?;
            Ok(Some(DeliveryOutcome::DeliveredSse))
        }
        (Some(DeliveryState::Queued), true) => {
            change_delivery_state(hub, entry.seq, DeliveryState::Queued, DeliveryState::Sse)
                .await?;
            Ok(Some(DeliveryOutcome::DeliveredSse))
        }
        (Some(DeliveryState::Pending), false) => Ok(None),
        (
            Some(DeliveryState::Queued | DeliveryState::Webhook | DeliveryState::Failed) | None,
            _,
        ) => Ok(Some(DeliveryOutcome::Queued)),
    }
}

/// Corrects the delivery state of a message that is already committed. While the database is away the sender is told to come
/// back, and the correction is tried again until it is stored.
async fn change_delivery_state(
    hub: &HubContext,
    seq: LogSeq,
    from: DeliveryState,
    to: DeliveryState,
) -> Result<()> {
    let change = async move |txn: &mut WriteTxn<'_>| {
        Ok(messages::change_delivery_state(txn, seq, from, to)
            .await
            .map(drop)?)
    };
    let pending = hub.delivery().claim_webhook(seq);
    let changed = hub.store().write(change).await;
    if let Err(error) = &changed
        && error.code == ErrorCode::Unavailable
    {
        let hub = hub.clone();
        tokio::spawn(async move {
            let changed = hub.store().write_until_done(change).await;
            if let Err(error) = changed {
                tracing::error!(%error, cause = error.cause, "a delivery state was not corrected");
            }
            drop(pending);
        });
    }
    changed
}

/// First pause between two polls of a repeated request for the outcome of the first one. It doubles
/// up to [`MAX_POLL_PAUSE`].
const FIRST_POLL_PAUSE: Duration = Duration::from_millis(25);
/// The longest pause: a webhook may take minutes, and its sender still hears of the outcome within a second.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(1);

/// Waits a few seconds for the outcome of the first request, which may still be waiting for its webhook (failure 13), and returns
/// it again. Later the client is told to come back: it must not wait, and read the database, for as long as a webhook may take.
pub(super) async fn await_first_outcome(hub: &HubContext, seq: LogSeq) -> Result<SendOutcome> {
    let deadline = Instant::now() + limits::REPEATED_SEND_WAIT;
    let mut pause = FIRST_POLL_PAUSE;
    while Instant::now() < deadline {
        let message = hub
            .store()
            .read(async move |tx| Ok(messages::find_message(tx, seq).await?))
            .await?;
        let message = message.ok_or_else(|| {
            Error::internal("an idempotency key speaks of a message that is gone")
        })?;
        if let Some(delivery) = status::first_outcome(&message) {
            return Ok(SendOutcome {
                trace_id: hub.entry_trace_id(&message.entry),
                delivery,
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_POLL_PAUSE);
    }
    Err(Error::unavailable(
        "the first request with this key has no outcome yet",
    ))
}
