//! Appends rows to a channel's log, and enqueues the deliveries of each message; every post to a
//! channel goes through here.

use super::member_delivery;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{
    EntryKind, LogSeq, MemberId, NewLogEntry, SubjectId, WriteTxn, channel_entries, member_state,
};
use crate::{Result, random};
use chorus_wire::Error;
use chorus_wire::channel::artifact::{Artifact, FileInfo};
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::{MemberRoute, SenderKind};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind, MemberChange};
use chorus_wire::channel::mention::{self, MemberName};
use std::sync::Arc;

/// The sender of a channel row.
#[derive(Clone, Debug)]
pub(crate) struct ChannelSender {
    /// The actor in the log.
    pub actor_id: SubjectId,
    pub name: Arc<str>,
    pub sender_kind: SenderKind,
    /// The sender's membership; operators and the hub have none.
    pub member_id: Option<MemberId>,
    /// Agent-to-agent steps since a person's message; 0 for a person's own message.
    pub turn: u32,
}

impl ChannelSender {
    /// A member that sends as an agent, `turn` steps after a person's message.
    pub fn as_agent(member: &ChannelMemberRecord, turn: u32) -> Self {
        let actor_id = member.principal.map_or(member.id.into(), SubjectId::from);
        Self {
            actor_id,
            name: member.name.as_str().into(),
            sender_kind: SenderKind::Agent,
            member_id: Some(member.id),
            turn,
        }
    }

    /// The owner, who sends as a person.
    pub fn as_owner(member: &ChannelMemberRecord) -> Self {
        Self {
            sender_kind: SenderKind::Person,
            ..Self::as_agent(member, 0)
        }
    }

    /// An operator, who sends as a person too.
    pub fn as_operator() -> Self {
        Self {
            actor_id: SubjectId::HUB,
            name: "operator".into(),
            sender_kind: SenderKind::Person,
            member_id: None,
            turn: 0,
        }
    }

    /// The hub, for rows about the channel itself.
    pub fn as_hub() -> Self {
        Self {
            name: "hub".into(),
            sender_kind: SenderKind::Hub,
            ..Self::as_operator()
        }
    }

    /// A member that sends with its own key and not in answer to a delivery.
    pub fn from_member(member: &ChannelMemberRecord) -> Self {
        match member.via {
            MemberRoute::Owner => Self::as_owner(member),
            // One step after the last message it received. Otherwise an agent could evade the turn
            // limit by sending with its key.
            MemberRoute::Inbox | MemberRoute::Connection => {
                Self::as_agent(member, u32::try_from(member.turn).unwrap_or(0) + 1)
            }
        }
    }
}

/// A row that was appended, and its sequence.
#[derive(Clone, Debug)]
pub(crate) struct AppendedRow {
    pub seq: LogSeq,
    pub row: ChannelRow,
}

/// A message to be delivered to the members it is routed to.
#[derive(Clone, Debug)]
pub(crate) struct RoutedMessage<'a> {
    /// Its sequence in the log, from which each delivery attempt reads it.
    pub seq: LogSeq,
    pub row: &'a ChannelRow,
    /// All members of the channel that have joined.
    pub roster: &'a [ChannelMemberRecord],
    /// The ids of the members that it mentions.
    pub mentioned: &'a [MemberId],
}

/// Appends an event to the channel. The caller calls `Hub::wake_outbox` after the commit.
pub(crate) async fn append_event(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    callback: CallbackPost,
) -> Result<AppendedRow> {
    let CallbackPost { event, agent } = callback;
    if let (Some(member), Some(agent)) = (sender.member_id, &agent) {
        let text = serde_json::to_string(agent).map_err(Error::internal)?;
        member_state::set_identity(&txn.tx, member, &text).await?;
    }
    if let (Some(member), ChannelEvent::Status { status }) = (sender.member_id, &event) {
        let shown_status = Some(status.as_str()).filter(|status| !status.is_empty());
        member_state::set_status(&txn.tx, member, shown_status, txn.now()).await?;
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
                channel_entries::record_tool_call(&txn.tx, member, &call_id, appended.seq).await?;
            }
            return Ok(appended);
        }
        ChannelRowKind::ToolResult => {
            if let (Some(member), Some(call_id)) = (sender.member_id, &row.id) {
                row.call = channel_entries::find_tool_call_seq(&txn.tx, member, call_id)
                    .await?
                    .map(LogSeq::to_u64);
            }
        }
        ChannelRowKind::Status
        | ChannelRowKind::Error
        | ChannelRowKind::Member
        | ChannelRowKind::Artifact
        | ChannelRowKind::File => {}
    }
    append_row(txn, channel, sender, row)
}

async fn append_message(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    mut row: ChannelRow,
) -> Result<AppendedRow> {
    let mut roster = channels::list_members(&txn.tx, channel.id).await?;
    // nothing is delivered to an agent that has not accepted.
    roster.retain(ChannelMemberRecord::has_joined);
    let names = mention::find_mentions(row.content.as_deref().unwrap_or_default());
    let mentioned: Vec<&ChannelMemberRecord> = roster
        .iter()
        .filter(|member| names.contains(&mention::fold_name(&member.name)))
        .collect();
    row.id = Some(format!("msg_{}", random::new_id().simple()));
    row.mentions = mentioned
        .iter()
        .filter_map(|member| MemberName::parse("name", &member.name).ok())
        .collect();
    row.turn = Some(sender.turn);
    let mentioned: Vec<MemberId> = mentioned.iter().map(|member| member.id).collect();
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

/// Appends a row that says what changed about a member.
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

/// Appends a row that says which version of an artifact was written.
pub(super) fn append_artifact_change(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    artifact: &Artifact,
) -> Result<AppendedRow> {
    let row = ChannelRow {
        name: Some(artifact.slug.clone()),
        version: Some(artifact.version),
        ..ChannelRow::new(ChannelRowKind::Artifact, &sender.name, sender.sender_kind)
    };
    append_row(txn, channel, sender, row)
}

/// Appends a row that says which file was put.
pub(super) fn append_file_put(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    sender: &ChannelSender,
    file: &FileInfo,
) -> Result<AppendedRow> {
    let row = ChannelRow {
        name: Some(file.name.clone()),
        ..ChannelRow::new(ChannelRowKind::File, &sender.name, sender.sender_kind)
    };
    append_row(txn, channel, sender, row)
}

/// Appends a row that says that a message did not reach a member, and why.
pub(super) fn append_untaken_delivery(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    change: MemberChange,
    message_id: Option<String>,
    reason: &str,
) -> Result<AppendedRow> {
    let hub = ChannelSender::as_hub();
    let row = ChannelRow {
        id: message_id,
        name: Some(member.name.clone()),
        message: Some(reason.to_owned()),
        change: Some(change),
        via: Some(member.via),
        ..ChannelRow::new(ChannelRowKind::Member, &hub.name, hub.sender_kind)
    };
    append_row(txn, channel, &hub, row)
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
        ChannelRowKind::Artifact => EntryKind::ArtifactChange,
        ChannelRowKind::File => EntryKind::FilePut,
    };
    let (seq, at) = txn.append_entry(NewLogEntry {
        subject: channel.id.into(),
        subject_name: channel.public_id.clone(),
        kind,
        actor: sender.actor_id,
        actor_name: sender.name.clone(),
        body: serde_json::to_string(&row).map_err(Error::internal)?.into(),
        fallback: None,
    });
    row.cursor = Some(seq.to_u64());
    row.timestamp = Some(at);
    Ok(AppendedRow { seq, row })
}
