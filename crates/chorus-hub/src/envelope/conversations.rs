//! The conversations of an agent, and for operators who wrote to whom; the messages of one conversation, and those that contain
//! a text. Every page reads a bounded part of the log and has a cursor to go on (D-116).

use super::history::history_row;
use crate::context::HubContext;
use crate::store::message_scan::{self, MessagePair, MessageScan, ScanRange, ScannedMessage};
use crate::store::{AgentId, DbConnection, DeliveryState, LogEntry, LogSeq, RowId, SubjectId};
use crate::{Principal, Result, identity};
use chorus_wire::identity::AgentName;
use chorus_wire::list_page::ListPage;
use chorus_wire::message::{ConversationRow, HistoryRow};
use chorus_wire::{Error, ErrorCode, limits};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// Which messages a search finds. `conversation_id` may be empty: the messages without one.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    pub peer: Option<String>,
    pub conversation_id: Option<String>,
    pub text: Option<String>,
    /// Only messages before this id.
    pub before: Option<u64>,
}

/// The fields of an envelope that a search looks at.
#[derive(Deserialize)]
struct SearchedFields<'a> {
    #[serde(borrow)]
    original_text: Cow<'a, str>,
    #[serde(borrow, default)]
    conversation_id: Option<Cow<'a, str>>,
}

impl<'a> SearchedFields<'a> {
    fn read(entry: &'a LogEntry) -> Result<Self> {
        serde_json::from_str(&entry.body).map_err(Error::internal)
    }
}

fn range_before(hub: &HubContext, before: Option<u64>) -> ScanRange {
    ScanRange {
        before: before.map_or(LogSeq::AFTER_ALL, LogSeq::from_client),
        indexed: hub.store().indexed_seq(),
    }
}

fn format_next(next_before: Option<LogSeq>) -> Option<String> {
    next_before.map(|seq| seq.to_u64().to_string())
}

/// `GET /conversations`: for an agent its own, for an operator the pairs of agents that exchanged messages. A page covers the
/// messages before `before`, as many as one scan reads; a conversation that has older ones comes again on a later page.
pub async fn list_conversations(
    principal: &Principal,
    hub: &HubContext,
    before: Option<u64>,
) -> Result<ListPage<ConversationRow>> {
    let range = range_before(hub, before);
    match principal {
        Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(caller) => {
            let agent = caller.agent.id;
            let scan = hub
                .store()
                .read(async move |tx| Ok(message_scan::scan_messages(tx, agent, range).await?))
                .await?;
            group_conversations(agent, scan)
        }
        Principal::Operator(_) => {
            let scan = hub
                .store()
                .read(async move |tx| Ok(message_scan::scan_message_pairs(tx, range.before).await?))
                .await?;
            Ok(group_pairs(scan))
        }
    }
}

/// Conversations in the order of their newest messages.
#[derive(Default)]
struct ConversationGroups {
    rows: Vec<ConversationRow>,
    places: HashMap<(Vec<String>, Option<String>), usize>,
}

impl ConversationGroups {
    /// The row of the conversation; the first message that is added is its newest.
    fn find_or_add(&mut self, message: ConversationRow) -> &mut ConversationRow {
        let key = (message.agents.clone(), message.conversation_id.clone());
        let place = *self.places.entry(key).or_insert(self.rows.len());
        if place == self.rows.len() {
            self.rows.push(message);
        }
        &mut self.rows[place]
    }
}

fn sorted_pair(sender: &str, receiver: &str) -> Vec<String> {
    let mut agents = vec![sender.to_owned(), receiver.to_owned()];
    agents.sort_unstable();
    agents
}

fn group_conversations(
    agent: AgentId,
    scan: MessageScan<ScannedMessage>,
) -> Result<ListPage<ConversationRow>> {
    let mut groups = ConversationGroups::default();
    let own_id = SubjectId::from(agent);
    for message in &scan.rows {
        let entry = &message.entry;
        let fields = SearchedFields::read(entry)?;
        let row = groups.find_or_add(ConversationRow {
            agents: sorted_pair(&entry.actor_name, &entry.subject_name),
            conversation_id: fields.conversation_id.map(Cow::into_owned),
            last_id: entry.seq.to_u64(),
            last_at: entry.at,
            last_sender_id: entry.actor_name.to_string(),
            last_text: Some(cut_preview(&fields.original_text)),
            messages: 0,
            failed: 0,
            unread: Some(0),
        });
        row.messages += 1;
        row.failed += u64::from(entry.delivery == Some(DeliveryState::Failed));
        let is_received = entry.subject == own_id && entry.actor != own_id;
        let is_unread = is_received && entry.shown_at.is_none() && !message.is_answered;
        row.unread = row.unread.map(|unread| unread + u64::from(is_unread));
    }
    Ok(ListPage {
        rows: groups.rows,
        next: format_next(scan.next_before),
    })
}

fn group_pairs(scan: MessageScan<MessagePair>) -> ListPage<ConversationRow> {
    let mut groups = ConversationGroups::default();
    for message in scan.rows {
        let row = groups.find_or_add(ConversationRow {
            agents: sorted_pair(&message.sender, &message.receiver),
            conversation_id: None,
            last_id: message.seq.to_u64(),
            last_at: message.at,
            last_sender_id: message.sender,
            last_text: None,
            messages: 0,
            failed: 0,
            unread: None,
        });
        row.messages += 1;
        row.failed += u64::from(message.is_failed);
    }
    ListPage {
        rows: groups.rows,
        next: format_next(scan.next_before),
    }
}

fn cut_preview(text: &str) -> String {
    text.chars().take(limits::PREVIEW_CHARS).collect()
}

/// `GET /agent/messages` with a filter or with `before`: the newest messages that match, oldest first. `next` is the `before` of
/// the page with older ones; a page may be short or empty and still have one.
pub async fn find_messages(
    principal: &Principal,
    hub: &HubContext,
    filter: MessageFilter,
    limit: usize,
) -> Result<ListPage<HistoryRow>> {
    let agent = principal.require_agent()?.id;
    let range = range_before(hub, filter.before);
    let mut search = MessageSearch {
        conversation_id: filter.conversation_id,
        text: filter.text.map(|text| text.to_lowercase()),
        limit: limit.clamp(1, limits::HISTORY_PAGE),
        found: Vec::new(),
    };
    let peer = match &filter.peer {
        Some(peer) => Some(find_peer(hub, peer).await?),
        None => None,
    };
    let (search, next_before) = hub
        .store()
        .read(async move |tx| {
            let next_before = match peer {
                Some(peer) => search_peer(tx, &mut search, agent, &peer, range).await?,
                None => search_all(tx, &mut search, agent, range).await?,
            };
            Ok((search, next_before))
        })
        .await?;
    let salt = hub.store().trace_salt;
    let rows = search
        .found
        .into_iter()
        .rev()
        .map(|entry| history_row(entry, salt))
        .collect::<std::result::Result<_, _>>()?;
    Ok(ListPage {
        rows,
        next: format_next(next_before),
    })
}

/// What is searched for, and the messages found so far, newest first.
struct MessageSearch {
    conversation_id: Option<String>,
    /// In lower case.
    text: Option<String>,
    limit: usize,
    found: Vec<LogEntry>,
}

impl MessageSearch {
    /// Takes the entry if it matches; false when it matches and there is no room left for it.
    fn take_entry(&mut self, entry: LogEntry) -> Result<bool> {
        if !self.is_match(&entry)? {
            return Ok(true);
        }
        let has_room = self.found.len() < self.limit;
        if has_room {
            self.found.push(entry);
        }
        Ok(has_room)
    }

    fn last_found(&self) -> Option<LogSeq> {
        self.found.last().map(|entry| entry.seq)
    }

    fn is_match(&self, entry: &LogEntry) -> Result<bool> {
        if self.conversation_id.is_none() && self.text.is_none() {
            return Ok(true);
        }
        let fields = SearchedFields::read(entry)?;
        let conversation_id = fields.conversation_id.as_deref().unwrap_or_default();
        let is_conversation = self
            .conversation_id
            .as_ref()
            .is_none_or(|wanted| conversation_id == wanted);
        let has_text = self
            .text
            .as_ref()
            .is_none_or(|wanted| fields.original_text.to_lowercase().contains(wanted));
        Ok(is_conversation && has_text)
    }
}

/// Searches one scan of all messages of the agent; returns the sequence before which the next page looks.
async fn search_all(
    tx: &DbConnection<'_>,
    search: &mut MessageSearch,
    agent: AgentId,
    range: ScanRange,
) -> Result<Option<LogSeq>> {
    let scan = message_scan::scan_messages(tx, agent, range).await?;
    for message in scan.rows {
        if !search.take_entry(message.entry)? {
            return Ok(search.last_found());
        }
    }
    Ok(scan.next_before)
}

/// An agent that messages were exchanged with. A name that is no longer registered still has its messages.
struct PeerName {
    id: Option<AgentId>,
    name: String,
}

async fn find_peer(hub: &HubContext, peer: &str) -> Result<PeerName> {
    let name = AgentName::parse("peer", peer)?;
    let found = identity::find_agent(hub.identity(), &name).await?;
    Ok(PeerName {
        id: found.as_ref().map(|found| found.id),
        name: found.map_or_else(|| name.to_text(), |found| found.agent_id.to_string()),
    })
}

/// Messages that one query reads: a few pages of a conversation. The next query reads on, within the same window.
const PEER_CHUNK: usize = 200;

/// Searches the messages with one peer; returns the sequence before which the next page looks.
async fn search_peer(
    tx: &DbConnection<'_>,
    search: &mut MessageSearch,
    agent: AgentId,
    peer: &PeerName,
    mut range: ScanRange,
) -> Result<Option<LogSeq>> {
    let window = message_scan::find_peer_window(tx, agent, peer.id, range).await?;
    let mut bytes_read = 0;
    loop {
        let page =
            message_scan::list_peer_messages(tx, window, &peer.name, range, PEER_CHUNK).await?;
        for entry in page.entries {
            range.before = entry.seq;
            bytes_read += entry.body.len();
            if !search.take_entry(entry)? {
                return Ok(search.last_found());
            }
        }
        if page.is_complete {
            return Ok(window.floor);
        }
        if bytes_read >= limits::HISTORY_PAGE_BYTES {
            return Ok(Some(range.before));
        }
    }
}
