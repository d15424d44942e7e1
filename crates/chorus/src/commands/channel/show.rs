//! Rooms, members and lines as people read them.

use crate::out;
use chorus_wire::channel::room::{Channel, Member, Presence, Voice};
use chorus_wire::channel::row::{Change, Row, RowKind};

pub fn room(room: &Channel) -> String {
    let (id, name) = (
        out::harmless(&room.id),
        out::painted(out::STRONG, &out::harmless(&room.name)),
    );
    let owner = room
        .owner
        .as_deref()
        .map(|owner| format!("  of {}", out::harmless(owner)))
        .unwrap_or_default();
    format!("{id}  {name}  {} in it{owner}", room.members)
}

pub fn member(member: &Member) -> String {
    let mut words = vec![out::painted(
        out::STRONG,
        &out::harmless(member.name.as_str()),
    )];
    words.push(
        match member.kind {
            Voice::Person => "person",
            Voice::Agent => "agent",
            Voice::Hub => "hub",
        }
        .into(),
    );
    words.push(format!("hears {}", member.deliver.as_str()));
    match member.presence {
        Presence::Online => words.push(out::painted(out::GOOD, "online")),
        Presence::Offline => words.push("offline".into()),
        Presence::Unknown => {}
    }
    if member.unreachable {
        words.push(out::painted(out::BAD, "unreachable"));
    }
    words.extend(
        member
            .status
            .as_deref()
            .map(|status| format!("· {}", out::harmless(status))),
    );
    words.join("  ")
}

pub fn row(row: &Row) -> String {
    let at = row.timestamp.map(|at| at.to_string()).unwrap_or_default();
    let time = out::painted(out::FAINT, out::clock(&at));
    let who = out::painted(out::STRONG, &out::harmless(&row.sender));
    let text = |text: &Option<String>| out::harmless(text.as_deref().unwrap_or_default());
    let (content, name, id) = (text(&row.content), text(&row.name), text(&row.id));
    match row.kind {
        RowKind::Message => format!("{time} {who}: {content}"),
        RowKind::ToolCall => {
            let args = row
                .args
                .as_deref()
                .map(|args| out::harmless(args.get()))
                .unwrap_or_default();
            format!(
                "{time} {who} → {name} {args} {}",
                out::painted(out::FAINT, &id)
            )
        }
        RowKind::ToolResult => {
            format!("{time} {who} ← {content} {}", out::painted(out::FAINT, &id))
        }
        RowKind::Status if text(&row.status).is_empty() => format!("{time} {who} · done"),
        RowKind::Status => format!(
            "{time} {who} · {}",
            out::painted(out::FAINT, &text(&row.status))
        ),
        RowKind::Error => {
            let code = row
                .code
                .as_deref()
                .map(|code| format!(" ({})", out::harmless(code)))
                .unwrap_or_default();
            format!(
                "{time} {who} {}",
                out::painted(out::BAD, &format!("failed: {}{code}", text(&row.message)))
            )
        }
        RowKind::Member => {
            let became = match row.change {
                Some(Change::Joined) => "joined",
                Some(Change::Left) => "left",
                Some(Change::Removed) => "was put out",
                Some(Change::Unreachable) => "cannot be reached",
                Some(Change::Reachable) => "can be reached again",
                None => "changed",
            };
            format!(
                "{time} {}",
                out::painted(out::FAINT, &format!("{name} {became}"))
            )
        }
    }
}
