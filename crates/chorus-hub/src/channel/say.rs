//! The one way in which anything is said in a room: kept as a line of its log, then owed to those who are to hear it.

use super::deliver;
use crate::store::channels::{self, Member, Room};
use crate::store::{Kind, NewEntry, Txn, log};
use crate::{Result, clock};
use chorus_wire::Error;
use chorus_wire::channel::event::{Callback, Event};
use chorus_wire::channel::mention::{self, MemberName};
use chorus_wire::channel::room::{Via, Voice};
use chorus_wire::channel::row::{Change, Row, RowKind};
use std::sync::Arc;

/// Whose word it is.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    /// The actor in the log.
    pub id: i64,
    pub name: Arc<str>,
    pub voice: Voice,
    /// Its place in the room; operators and the room itself have none.
    pub member: Option<i64>,
    /// Steps from agent to agent since a person spoke: 0 is a person's own word.
    pub turn: u32,
}

impl Speaker {
    /// A member's word as an agent's, `turn` steps from a person's.
    pub fn agent(member: &Member, turn: u32) -> Self {
        let id = member.principal.unwrap_or(member.id);
        Self {
            id,
            name: member.name.as_str().into(),
            voice: Voice::Agent,
            member: Some(member.id),
            turn,
        }
    }

    /// The owner's word, which is a person's.
    pub fn owner(member: &Member) -> Self {
        Self {
            voice: Voice::Person,
            ..Self::agent(member, 0)
        }
    }

    /// An operator's, which is a person's too.
    pub fn operator() -> Self {
        Self {
            id: log::HUB,
            name: "operator".into(),
            voice: Voice::Person,
            member: None,
            turn: 0,
        }
    }

    /// What the room says of itself.
    pub fn hub() -> Self {
        Self {
            name: "hub".into(),
            voice: Voice::Hub,
            ..Self::operator()
        }
    }

    /// As this member speaks when it comes with its own key and answers nothing in particular.
    pub fn of(member: &Member) -> Self {
        match member.via {
            Via::Owner => Self::owner(member),
            // One step after what it heard last, or an agent could go round the bound of R-73 by its key.
            Via::Inbox | Via::Connection => {
                Self::agent(member, u32::try_from(member.turn).unwrap_or(0) + 1)
            }
        }
    }
}

/// A line that was kept.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub seq: i64,
    pub row: Row,
}

/// What those who are to hear it are owed.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    /// Its place in the log, from which it can be read again.
    pub seq: i64,
    pub row: &'a Row,
    /// Everybody in the room.
    pub roster: &'a [Member],
    /// Those that it calls by name.
    pub called: &'a [i64],
}

/// Keeps what was said. Ring [`crate::Hub::owes`] after the commit.
pub(crate) async fn say(
    txn: &mut Txn<'_>,
    room: &Room,
    from: &Speaker,
    said: Callback,
) -> Result<Line> {
    let Callback { event, agent } = said;
    if let (Some(member), Some(agent)) = (from.member, &agent) {
        let text = serde_json::to_string(agent).map_err(Error::internal)?;
        channels::set_identity(&txn.tx, member, &text).await?;
    }
    if let (Some(member), Event::Status { status }) = (from.member, &event) {
        let shown = Some(status.as_str()).filter(|status| !status.is_empty());
        channels::set_status(&txn.tx, member, shown, txn.now()).await?;
    }
    let mut row = Row {
        agent,
        ..Row::of(event, &from.name, from.voice)
    };
    match row.kind {
        RowKind::Message => return message(txn, room, from, row).await,
        RowKind::ToolCall => {
            let call = row.id.clone().unwrap_or_default();
            let line = keep(txn, room, from, row)?;
            if let Some(member) = from.member {
                channels::call(&txn.tx, member, &call, line.seq).await?;
            }
            return Ok(line);
        }
        RowKind::ToolResult => {
            if let (Some(member), Some(call)) = (from.member, &row.id) {
                row.call = channels::call_place(&txn.tx, member, call)
                    .await?
                    .map(|seq| seq as u64);
            }
        }
        RowKind::Status | RowKind::Error | RowKind::Member => {}
    }
    keep(txn, room, from, row)
}

async fn message(txn: &mut Txn<'_>, room: &Room, from: &Speaker, mut row: Row) -> Result<Line> {
    let roster = channels::roster(&txn.tx, room.id).await?;
    let names = mention::mentions(row.content.as_deref().unwrap_or_default());
    let called: Vec<&Member> = roster
        .iter()
        .filter(|member| names.contains(&mention::fold(&member.name)))
        .collect();
    row.id = Some(format!("msg_{}", clock::new_id().simple()));
    row.mentions = called
        .iter()
        .filter_map(|member| MemberName::parse("name", &member.name).ok())
        .collect();
    row.turn = Some(from.turn);
    let called: Vec<i64> = called.iter().map(|member| member.id).collect();
    let line = keep(txn, room, from, row)?;
    let message = Message {
        seq: line.seq,
        row: &line.row,
        roster: &roster,
        called: &called,
    };
    deliver::fan_out(txn, room, &message, from).await?;
    Ok(line)
}

/// Tells the room what became of a member.
pub(crate) fn tell(
    txn: &mut Txn<'_>,
    room: &Room,
    by: &Speaker,
    member: &Member,
    change: Change,
) -> Result<Line> {
    let row = Row {
        name: Some(member.name.clone()),
        change: Some(change),
        via: Some(member.via),
        ..Row::new(RowKind::Member, &by.name, by.voice)
    };
    keep(txn, room, by, row)
}

fn keep(txn: &mut Txn<'_>, room: &Room, from: &Speaker, mut row: Row) -> Result<Line> {
    let kind = match row.kind {
        RowKind::Message => Kind::Said,
        RowKind::ToolCall => Kind::ToolCall,
        RowKind::ToolResult => Kind::ToolResult,
        RowKind::Status => Kind::Status,
        RowKind::Error => Kind::Fault,
        RowKind::Member => Kind::Member,
    };
    let (seq, at) = txn.append(NewEntry {
        subject: room.id,
        subject_name: room.public_id.clone(),
        kind,
        actor: from.id,
        actor_name: from.name.clone(),
        body: serde_json::to_string(&row).map_err(Error::internal)?.into(),
        otherwise: None,
    });
    (row.cursor, row.timestamp) = (Some(seq as u64), Some(at));
    Ok(Line { seq, row })
}
