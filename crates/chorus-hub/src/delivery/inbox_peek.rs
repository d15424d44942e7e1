//! Reading an inbox without a stream, for clients that poll. Nothing is marked as delivered.

use super::{Delivery, render};
use crate::store::{LogSeq, log, messages, trimmed_streams};
use crate::{Principal, Result};
use bytes::Bytes;
use chorus_wire::event_chunk::EventChunkReader;
use chorus_wire::{Error, limits};
use serde::Serialize;
use serde_json::value::RawValue;

/// A page of inbox events.
#[derive(Clone, Debug, Serialize)]
pub struct InboxPage {
    pub events: Vec<InboxEvent>,
    /// More events follow the last one.
    pub more: bool,
    /// The sequence to continue after, also when the page is empty.
    pub next: u64,
}

/// An event as the inbox stream would print it.
#[derive(Clone, Debug, Serialize)]
pub struct InboxEvent {
    /// Its sequence; `since` with it returns what follows.
    pub id: u64,
    /// `message`, `receipt`, `shown`, `channel`, `channel_invite`, `job`, `job_update`, `job_result`, or `gap` before what retention has left.
    pub event: String,
    pub data: Box<RawValue>,
}

/// All events after `since`; without it, the messages that have no response yet. Nothing is marked as delivered.
pub async fn peek_inbox(
    principal: &Principal,
    delivery: &Delivery,
    since: Option<u64>,
    limit: usize,
) -> Result<InboxPage> {
    let agent_id = principal.require_agent()?.id;
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = delivery.store().indexed_seq();
    let after = since.map(LogSeq::from_client);
    let (page, start_seq) = delivery
        .store()
        .read(async move |tx| {
            Ok(match after {
                Some(after) => {
                    let subject = agent_id.into();
                    let page =
                        log::list_subject_entries(tx, subject, after, indexed, limit).await?;
                    // Read after the page: what was deleted in between counts as a gap, and is not hidden.
                    let trimmed_seq = trimmed_streams::find_trimmed_seq(tx, subject).await?;
                    (page, after.max(trimmed_seq))
                }
                None => {
                    // Read before the messages: an entry that is committed in between comes after it.
                    let last_seq = log::newest_seq(tx).await?;
                    (
                        messages::list_unanswered_messages(
                            tx,
                            agent_id,
                            LogSeq::START,
                            indexed,
                            limit,
                        )
                        .await?,
                        last_seq,
                    )
                }
            })
        })
        .await?;
    let next = page
        .entries
        .last()
        .map_or(start_seq, |entry| match after {
            Some(_) => entry.seq.max(start_seq),
            None => entry.seq,
        })
        .to_u64();
    let salt = delivery.store().trace_salt;
    let gap = after
        .filter(|after| start_seq > *after)
        .map(|after| render::render_gap(after.to_u64(), start_seq.to_u64()));
    let entries = page
        .entries
        .iter()
        .filter(|entry| after.is_none() || entry.seq > start_seq);
    let events = gap
        .into_iter()
        .chain(entries.map(|entry| render::render_event(entry, salt, delivery.seal_key())))
        .map(parse_event)
        .collect::<Result<_>>()?;
    Ok(InboxPage {
        events,
        more: !page.is_complete,
        next,
    })
}

/// Parsed from the bytes of the stream, so that both agree.
fn parse_event(chunk: Bytes) -> Result<InboxEvent> {
    let event = EventChunkReader::new(chunk.len())
        .read_pieces([chunk])
        .pop()
        .ok_or_else(|| Error::internal("an entry is no event"))?;
    let id = event
        .id
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| Error::internal("an event has no place"))?;
    Ok(InboxEvent {
        id,
        event: event.name,
        data: RawValue::from_string(event.data).map_err(Error::internal)?,
    })
}
