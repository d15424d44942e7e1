//! History: what an agent sent and received, in the order of the log (TRN-56, R-15).

use crate::store::{DbError, Entry, Mark, log, messages};
use crate::{Hub, Principal, Result, identity};
use chorus_wire::identity::Name;
use chorus_wire::message::{HistoryRow, Via};
use chorus_wire::{Code, limits, time::Micros};
use serde_json::value::RawValue;

/// Where a history page starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Strictly after this id.
    Id(u64),
    /// At or after this instant.
    Instant(Micros),
}

/// `GET /agent/messages`
pub async fn history(
    who: &Principal,
    hub: &Hub,
    since: Option<Since>,
    limit: usize,
) -> Result<Vec<HistoryRow>> {
    let me = who.agent()?.id;
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = hub.store().indexed();
    let entries = hub
        .store()
        .read(async move |tx| {
            let after = match since {
                None => 0,
                Some(Since::Id(id)) => i64::try_from(id).unwrap_or(i64::MAX),
                Some(Since::Instant(at)) => log::before(tx, at).await?,
            };
            Ok(messages::history(tx, me, after, indexed, limit).await?)
        })
        .await?;
    let salt = hub.store().salt;
    Ok(entries
        .into_iter()
        .map(|entry| row(entry, salt))
        .collect::<std::result::Result<_, _>>()?)
}

/// Messages that were sought, oldest first.
#[derive(Debug)]
pub struct Sought {
    pub rows: Vec<HistoryRow>,
    /// There are more: after the last of them, or before the first where the latest were asked for.
    pub more: bool,
}

/// What this agent sent and received, with `peer` what it said with that one: the first after a place, the latest without.
pub async fn sought(
    who: &Principal,
    hub: &Hub,
    peer: Option<&str>,
    since: Option<Since>,
    limit: usize,
) -> Result<Sought> {
    let me = who.agent()?.id;
    let peer = match peer {
        Some(name) => Some(
            identity::find(hub, &Name::parse("peer", name)?)
                .await?
                .ok_or(Code::AgentNotFound)?
                .id,
        ),
        None => None,
    };
    let (limit, indexed) = (limit.clamp(1, limits::HISTORY_PAGE), hub.store().indexed());
    let page = hub
        .store()
        .read(async move |tx| {
            let after = match since {
                None => None,
                Some(Since::Id(id)) => Some(i64::try_from(id).unwrap_or(i64::MAX)),
                Some(Since::Instant(at)) => Some(log::before(tx, at).await?),
            };
            Ok(messages::sought(tx, me, peer, after, indexed, limit).await?)
        })
        .await?;
    let salt = hub.store().salt;
    let rows = page
        .entries
        .into_iter()
        .map(|entry| row(entry, salt))
        .collect::<std::result::Result<_, _>>()?;
    Ok(Sought {
        rows,
        more: !page.whole,
    })
}

fn row(entry: Entry, salt: u32) -> std::result::Result<HistoryRow, DbError> {
    Ok(HistoryRow {
        id: entry.seq as u64,
        trace_id: log::trace_id(entry.seq, entry.at, salt),
        sender_id: entry.actor_name.to_string(),
        receiver_id: entry.subject_name.to_string(),
        envelope: RawValue::from_string(entry.body.to_string())
            .map_err(|e| DbError::Other(e.to_string()))?,
        delivered_via: via(entry.via),
        timestamp: entry.at,
    })
}

/// A webhook that has not answered yet has not delivered either: until then the message waits.
pub(super) fn via(mark: Option<Mark>) -> Via {
    match mark {
        Some(Mark::Sse) => Via::Sse,
        Some(Mark::Webhook) => Via::Webhook,
        Some(Mark::Failed) => Via::Failed,
        Some(Mark::Queued | Mark::Pending) | None => Via::Queued,
    }
}
