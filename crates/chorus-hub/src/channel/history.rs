//! Channel history, in pages and as a live stream; both show the same rows of the log.

use super::manage::{find_actor, read_actor};
use crate::context::HubContext;
use crate::delivery::{StreamFeed, find_start, open_channel_feed, render};
use crate::store::{ChannelId, LogEntry, LogSeq, RowId, channel_entries, log};
use crate::{Principal, Result};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::list_page::ListPage;
use chorus_wire::secret::Secret;
use chorus_wire::{Error, ErrorCode, limits};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Which rows of the history a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryRange {
    /// The first rows after this sequence.
    After(u64),
    /// The last rows before this sequence.
    Before(u64),
    /// The last messages before this sequence, without rows of other kinds.
    MessagesBefore(u64),
}

/// `GET /channels/{id}/messages`: rows of every kind, oldest first.
pub async fn list_channel_history(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    range: HistoryRange,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    let channel_id = read_actor(principal, hub, id).await?.channel.id;
    list_history_rows(hub, channel_id, range, limit).await
}

/// The same for a member that was admitted by a tool token instead of a key.
pub(crate) async fn list_history_rows(
    hub: &HubContext,
    channel_id: ChannelId,
    range: HistoryRange,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = hub.store().indexed_seq();
    let entries = hub
        .store()
        .read(async move |tx| {
            let page = match range {
                HistoryRange::After(seq) => {
                    log::list_subject_entries(
                        tx,
                        channel_id.into(),
                        LogSeq::from_client(seq),
                        indexed,
                        limit,
                    )
                    .await?
                }
                HistoryRange::Before(seq) => {
                    channel_entries::list_entries_before(
                        tx,
                        channel_id,
                        LogSeq::from_client(seq),
                        indexed,
                        false,
                        limit,
                    )
                    .await?
                }
                HistoryRange::MessagesBefore(seq) => {
                    channel_entries::list_entries_before(
                        tx,
                        channel_id,
                        LogSeq::from_client(seq),
                        indexed,
                        true,
                        limit,
                    )
                    .await?
                }
            };
            Ok(page.entries)
        })
        .await?;
    entries.iter().map(render_raw_line).collect()
}

/// The fields of a row that a search looks at.
#[derive(Deserialize)]
struct SearchedRow<'a> {
    #[serde(borrow, default)]
    content: Cow<'a, str>,
}

/// `GET /channels/{id}/messages?text=`: the newest messages that contain the text, oldest first. `next` is the `before` of the
/// page with older ones; a page may be short or empty and still have one.
pub async fn search_channel_messages(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    text: &str,
    before: Option<u64>,
    limit: usize,
) -> Result<ListPage<Box<RawValue>>> {
    let channel_id = read_actor(principal, hub, id).await?.channel.id;
    let before_seq = before.map_or(LogSeq::AFTER_ALL, LogSeq::from_client);
    let indexed = hub.store().indexed_seq();
    let page = hub
        .store()
        .read(async move |tx| {
            let scanned = limits::CONVERSATION_SCAN;
            let page = channel_entries::list_entries_before(
                tx, channel_id, before_seq, indexed, true, scanned,
            );
            Ok(page.await?)
        })
        .await?;
    let wanted = text.to_lowercase();
    let mut rows = Vec::new();
    let first_scanned = page.entries.first().map(|entry| entry.seq);
    let mut next = first_scanned.filter(|_| !page.is_complete);
    let mut last_found = None;
    for entry in page.entries.iter().rev() {
        let row = render_raw_line(entry)?;
        let searched: SearchedRow<'_> = serde_json::from_str(row.get()).map_err(Error::internal)?;
        if !searched.content.to_lowercase().contains(&wanted) {
            continue;
        }
        if rows.len() == limit.clamp(1, limits::HISTORY_PAGE) {
            next = last_found;
            break;
        }
        rows.push(row);
        last_found = Some(entry.seq);
    }
    rows.reverse();
    Ok(ListPage {
        rows,
        next: next.map(|seq| seq.to_u64().to_string()),
    })
}

fn render_raw_line(entry: &LogEntry) -> Result<Box<RawValue>> {
    RawValue::from_string(render::render_line(entry)).map_err(Error::internal)
}

/// `GET /channels/{id}/stream`: the rows from now on, or since the cursor.
pub async fn open_channel_stream(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    since: Option<HistoryStart>,
    resume_token: Option<Secret>,
) -> Result<StreamFeed> {
    let actor = read_actor(principal, hub, id).await?;
    let mut connected = serde_json::json!({
        "channel_id": &*actor.channel.public_id,
        "name": actor.channel.name,
        "as": &*actor.sender().name,
        "timestamp": hub.clock().now(),
    });
    if let Some(token) = resume_token {
        connected["resume_token"] = token.expose().into();
    }
    let member = actor.member.as_ref().map(|member| member.id);
    let since = find_start(hub.delivery(), since).await?;
    let feed = open_channel_feed(
        hub.delivery(),
        actor.channel.id,
        member,
        principal.credential_hashes(),
        since,
        &connected.to_string(),
    )
    .await?;
    // Checked again: a removal, a deletion or a key rotation between the look-up and the
    // subscription has ended the streams that were open then, but not this one.
    let caller = principal.clone();
    let id = id.to_owned();
    let current_actor = hub
        .store()
        .read(async move |tx| find_actor(tx, &caller, &id).await)
        .await?;
    let is_same_member = current_actor.member.map(|member| member.id) == member;
    let is_current_key = match principal {
        Principal::Agent(agent) => hub.identity().is_current_key(agent).await?,
        Principal::Operator(operator) => {
            let session = operator.console_session;
            hub.identity().is_open_session(session).await?
        }
        Principal::Anonymous => true,
    };
    match (is_same_member, is_current_key) {
        (true, true) => Ok(feed),
        (false, true) => Err(ErrorCode::NotFound.into()),
        (true | false, false) => Err(ErrorCode::Unauthorized.into()),
    }
}
