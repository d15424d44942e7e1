//! A look at an inbox that takes nothing from it: for those who ask now and then instead of holding a stream open.

use super::render;
use crate::store::{log, messages};
use crate::{Hub, Principal, Result};
use chorus_wire::{Error, limits, sse};
use serde::Serialize;
use serde_json::value::RawValue;

/// What is there to be heard.
#[derive(Clone, Debug, Serialize)]
pub struct InboxPage {
    pub events: Vec<InboxEvent>,
    /// There is more after the last of them.
    pub more: bool,
    /// The place to go on from, also where nothing was found.
    pub next: u64,
}

/// An event as the inbox stream would print it.
#[derive(Clone, Debug, Serialize)]
pub struct InboxEvent {
    /// Its place; what comes after it is asked for with `since`.
    pub id: u64,
    /// `message`, `receipt`, `channel`, `job` or `job_result`.
    pub event: String,
    pub data: Box<RawValue>,
}

/// Everything that was heard after `since`; without it, the messages that have no response yet. Nothing is marked as
/// delivered by looking at it.
pub async fn peek_inbox(
    principal: &Principal,
    hub: &Hub,
    since: Option<u64>,
    limit: usize,
) -> Result<InboxPage> {
    let agent_id = principal.require_agent()?.id;
    let (limit, indexed) = (
        limit.clamp(1, limits::HISTORY_PAGE),
        hub.store().indexed_seq(),
    );
    let after = since.map(|id| i64::try_from(id).unwrap_or(i64::MAX));
    let (page, start_seq) = hub
        .store()
        .read(async move |tx| {
            Ok(match after {
                Some(after) => (
                    log::list_subject_entries(tx, agent_id, after, indexed, limit).await?,
                    after,
                ),
                None => {
                    // Before the messages are: what is committed in between comes after it.
                    let last_seq = log::newest_seq(tx).await?;
                    (
                        messages::list_unanswered_messages(tx, agent_id, 0, indexed, limit).await?,
                        last_seq,
                    )
                }
            })
        })
        .await?;
    let next = page.entries.last().map_or(start_seq, |entry| entry.seq) as u64;
    let salt = hub.store().trace_salt;
    let events = page
        .entries
        .iter()
        .map(|entry| parse_event(&render::render_event(entry, salt)))
        .collect::<Result<_>>()?;
    Ok(InboxPage {
        events,
        more: !page.is_complete,
        next,
    })
}

/// From the bytes of the stream, so that both say the same.
fn parse_event(event: &[u8]) -> Result<InboxEvent> {
    let mut parsed = sse::SseReader::new(event.len())
        .read_chunk(event)
        .map_err(Error::internal)?;
    let event = parsed
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
