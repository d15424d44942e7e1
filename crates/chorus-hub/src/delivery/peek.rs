//! A look at an inbox that takes nothing from it: for those who ask now and then instead of holding a stream open.

use super::render;
use crate::store::{log, messages};
use crate::{Hub, Principal, Result};
use chorus_wire::{Error, limits, sse};
use serde::Serialize;
use serde_json::value::RawValue;

/// What is there to be heard.
#[derive(Clone, Debug, Serialize)]
pub struct Peeked {
    pub events: Vec<Waiting>,
    /// There is more after the last of them.
    pub more: bool,
    /// The place to go on from, also where nothing was found.
    pub next: u64,
}

/// An event as the inbox stream would print it.
#[derive(Clone, Debug, Serialize)]
pub struct Waiting {
    /// Its place; what comes after it is asked for with `since`.
    pub id: u64,
    /// `message`, `receipt`, `channel`, `job` or `job_result`.
    pub event: String,
    pub data: Box<RawValue>,
}

/// Everything that was heard after `since`; without it, the messages that have no response yet. Nothing is marked as
/// delivered by looking at it.
pub async fn peek(who: &Principal, hub: &Hub, since: Option<u64>, limit: usize) -> Result<Peeked> {
    let me = who.agent()?.id;
    let (limit, indexed) = (limit.clamp(1, limits::HISTORY_PAGE), hub.store().indexed());
    let after = since.map(|id| i64::try_from(id).unwrap_or(i64::MAX));
    let (page, start) = hub
        .store()
        .read(async move |tx| {
            Ok(match after {
                Some(after) => (log::heard(tx, me, after, indexed, limit).await?, after),
                None => {
                    // Before the messages are: what is committed in between comes after it.
                    let last = log::last(tx).await?;
                    (messages::unanswered(tx, me, 0, indexed, limit).await?, last)
                }
            })
        })
        .await?;
    let next = page.entries.last().map_or(start, |entry| entry.seq) as u64;
    let salt = hub.store().salt;
    let events = page
        .entries
        .iter()
        .map(|entry| read(&render::event(entry, salt)))
        .collect::<Result<_>>()?;
    Ok(Peeked {
        events,
        more: !page.whole,
        next,
    })
}

/// From the bytes of the stream, so that both say the same.
fn read(event: &[u8]) -> Result<Waiting> {
    let mut read = sse::Reader::new(event.len())
        .read(event)
        .map_err(Error::internal)?;
    let event = read
        .pop()
        .ok_or_else(|| Error::internal("an entry is no event"))?;
    let id = event
        .id
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| Error::internal("an event has no place"))?;
    Ok(Waiting {
        id,
        event: event.name,
        data: RawValue::from_string(event.data).map_err(Error::internal)?,
    })
}
