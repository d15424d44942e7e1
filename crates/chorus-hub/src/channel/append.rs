//! The one way in which anything is said in a room: kept as a line of its log, then owed to those who are to hear it.

use super::member_delivery;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{EntryKind, NewLogEntry, WriteTxn, log};
use crate::{Result, clock};
use chorus_wire::Error;
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::{MemberRoute, SenderKind};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind, MemberChange};
use chorus_wire::channel::mention::{self, MemberName};
use std::sync::Arc;

/// Whose word it is.
#[derive(Clone, Debug)]
pub(crate) struct ChannelSender {
    /// The actor in the log.
    pub actor_id: i64,
    pub name: Arc<str>,
    pub sender_kind: SenderKind,
    /// Its place in the room; operators and the room itself have none.
    pub member_id: Option<i64>,
    /// Steps from agent to agent since a person spoke: 0 is a person's own word.
    pub turn: u32,
}

impl ChannelSender {
    /// A member's word as an agent's, `turn` steps from a person's.
    pub fn as_agent(member: &ChannelMemberRecord, turn: u32) -> Self {
        let actor_id = member.principal.unwrap_or(member.id);
        Self {
            actor_id,
            name: member.name.as_str().into(),
            sender_kind: SenderKind::Agent,
            member_id: Some(member.id),
            turn,
        }
    }

    /// The owner's word, which is a person's.
    pub fn as_owner(member: &ChannelMemberRecord) -> Self {
        Self {
            sender_kind: SenderKind::Person,
            ..Self::as_agent(member, 0)
        }
    }

    /// An operator's, which is a person's too.
    pub fn as_operator() -> Self {
        Self {
            actor_id: log::HUB_SUBJECT,
            name: "operator".into(),
            sender_kind: SenderKind::Person,
            member_id: None,
            turn: 0,
        }
    }

    /// What the room says of itself.
    pub fn as_hub() -> Self {
        Self {
            name: "hub".into(),
            sender_kind: SenderKind::Hub,
            ..Self::as_operator()
        }
    }

    /// As this member speaks when it comes with its own key and answers nothing in particular.
    pub fn from_member(member: &ChannelMemberRecord) -> Self {
        match member.via {
            MemberRoute::Owner => Self::as_owner(member),
            // One step after what it heard last, or an agent could go round the bound of R-73 by its key.
            MemberRoute::Inbox | MemberRoute::Connection => {
                Self::as_agent(member, u32::try_from(member.turn).unwrap_or(0) + 1)
            }
        }
    }
}

/// A line that was kept.
#[derive(Clone, Debug)]
pub(crate) struct AppendedRow {
    pub seq: i64,
    pub row: ChannelRow,
}

/// What those who are to hear it are owed.
#[derive(Clone, Debug)]
pub(crate) struct RoutedMessage<'a> {
    /// Its place in the log, from which it can be read again.
    pub seq: i64,
    pub row: &'a ChannelRow,
    /// Everybody in the room.
    pub roster: &'a [ChannelMemberRecord],
    /// Those that it calls by name.
    pub mentioned: &'a [i64],
}

/// Keeps what was said. Ring [`crate::Hub::owes`] after the commit.
pub(crate) async fn append_event(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    callback: CallbackPost,
) -> Result<AppendedRow> {
    let CallbackPost { event, agent } = callback;
    if let (Some(member), Some(agent)) = (sender.member_id, &agent) {
        let text = serde_json::to_string(agent).map_err(Error::internal)?;
        channels::set_identity(&txn.tx, member, &text).await?;
    }
    if let (Some(member), ChannelEvent::Status { status }) = (sender.member_id, &event) {
        let shown_status = Some(status.as_str()).filter(|status| !status.is_empty());
        channels::set_status(&txn.tx, member, shown_status, txn.now()).await?;
    }
    let mut row = ChannelRow {
        agent,
        ..ChannelRow::from_event(event, &sender.name, sender.sender_kind)
    };
    match row.kind {
        ChannelRowKind::Message => return append_message(txn, channel, sender, row).await,
        ChannelRowKind::ToolCall => {
            let call_id = row.id.clone().unwrap_or_default();
            let appended = append_row(txn, channel, sender, row)?;
            if let Some(member) = sender.member_id {
                channels::record_tool_call(&txn.tx, member, &call_id, appended.seq).await?;
            }
            return Ok(appended);
        }
        ChannelRowKind::ToolResult => {
            if let (Some(member), Some(call_id)) = (sender.member_id, &row.id) {
                row.call = channels::find_tool_call_seq(&txn.tx, member, call_id)
                    .await?
                    .map(|seq| seq as u64);
            }
        }
        ChannelRowKind::Status | ChannelRowKind::Error | ChannelRowKind::Member => {}
    }
    append_row(txn, channel, sender, row)
}

async fn append_message(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    mut row: ChannelRow,
) -> Result<AppendedRow> {
    let roster = channels::list_members(&txn.tx, channel.id).await?;
    let names = mention::find_mentions(row.content.as_deref().unwrap_or_default());
    let mentioned: Vec<&ChannelMemberRecord> = roster
        .iter()
        .filter(|member| names.contains(&mention::fold_name(&member.name)))
        .collect();
    row.id = Some(format!("msg_{}", clock::new_id().simple()));
    row.mentions = mentioned
        .iter()
        .filter_map(|member| MemberName::parse("name", &member.name).ok())
        .collect();
    row.turn = Some(sender.turn);
    let mentioned: Vec<i64> = mentioned.iter().map(|member| member.id).collect();
    let appended = append_row(txn, channel, sender, row)?;
    let message = RoutedMessage {
        seq: appended.seq,
        row: &appended.row,
        roster: &roster,
        mentioned: &mentioned,
    };
    member_delivery::enqueue_deliveries(txn, channel, &message, sender).await?;
    Ok(appended)
}

/// Tells the room what became of a member.
pub(crate) fn append_member_change(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    member: &ChannelMemberRecord,
    change: MemberChange,
) -> Result<AppendedRow> {
    let row = ChannelRow {
        name: Some(member.name.clone()),
        change: Some(change),
        via: Some(member.via),
        ..ChannelRow::new(ChannelRowKind::Member, &sender.name, sender.sender_kind)
    };
    append_row(txn, channel, sender, row)
}

fn append_row(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    mut row: ChannelRow,
) -> Result<AppendedRow> {
    let kind = match row.kind {
        ChannelRowKind::Message => EntryKind::ChannelMessage,
        ChannelRowKind::ToolCall => EntryKind::ToolCall,
        ChannelRowKind::ToolResult => EntryKind::ToolResult,
        ChannelRowKind::Status => EntryKind::Status,
        ChannelRowKind::Error => EntryKind::ChannelError,
        ChannelRowKind::Member => EntryKind::MemberChange,
    };
    let (seq, at) = txn.append_entry(NewLogEntry {
        subject: channel.id,
        subject_name: channel.public_id.clone(),
        kind,
        actor: sender.actor_id,
        actor_name: sender.name.clone(),
        body: serde_json::to_string(&row).map_err(Error::internal)?.into(),
        fallback: None,
    });
    (row.cursor, row.timestamp) = (Some(seq as u64), Some(at));
    Ok(AppendedRow { seq, row })
}
