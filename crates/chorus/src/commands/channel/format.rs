//! Formats channels, members and history rows for people.

use crate::table::{self, TableCell, TableRow};
use crate::{local_time, output};
use chorus_wire::channel::channels::{Channel, ChannelMember, MemberPresence, SenderKind};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind, MemberChange};
use chorus_wire::channel::invitation::ChannelMembership;

pub fn format_channel(channel: &Channel) -> String {
    table::format_single_row(&channel_row(channel))
}

/// `ch_1f…  weather  2 in it  of alice@chorus`, and whether the reader has joined.
pub fn channel_row(channel: &Channel) -> TableRow<5> {
    let owner = channel.owner.as_deref();
    let owner = owner.map(|owner| format!("of {owner}")).unwrap_or_default();
    let invited = match channel.membership {
        Some(ChannelMembership::Invited) => "invited: chorus channel accept, or decline",
        Some(ChannelMembership::Joined) | None => "",
    };
    TableRow::of_cells([
        TableCell::from(&channel.id),
        TableCell::styled(output::STRONG_STYLE, &channel.name),
        TableCell::from(format!("{} in it", channel.members)),
        TableCell::from(owner),
        TableCell::styled(output::STRONG_STYLE, invited),
    ])
}

pub fn format_member(member: &ChannelMember) -> String {
    let mut parts = vec![output::paint_text(
        output::STRONG_STYLE,
        &output::escape_controls(member.name.as_str()),
    )];
    parts.push(
        match member.kind {
            SenderKind::Person => "person",
            SenderKind::Agent => "agent",
            SenderKind::Hub => "hub",
        }
        .into(),
    );
    parts.push(format!("hears {}", member.deliver.as_str()));
    match member.presence {
        MemberPresence::Online => parts.push(output::paint_text(output::GOOD_STYLE, "online")),
        MemberPresence::Offline => parts.push("offline".into()),
        MemberPresence::Unknown => {}
    }
    if member.membership == ChannelMembership::Invited {
        parts.push("invited".into());
    }
    if let Some(refusal) = &member.refusal {
        let text = format!("took nothing: {}", output::escape_controls(&refusal.reason));
        parts.push(output::paint_text(output::BAD_STYLE, &text));
    }
    if member.unreachable {
        parts.push(output::paint_text(output::BAD_STYLE, "unreachable"));
    }
    parts.extend(
        member
            .status
            .as_deref()
            .map(|status| format!("· {}", output::escape_controls(status))),
    );
    parts.join("  ")
}

fn format_member_change(change: Option<MemberChange>) -> &'static str {
    match change {
        Some(MemberChange::Joined) => "joined",
        Some(MemberChange::Declined) => "does not want to join",
        Some(MemberChange::Left) => "left",
        Some(MemberChange::Removed) => "was put out",
        Some(MemberChange::Unreachable) => "cannot be reached",
        Some(MemberChange::Reachable) => "can be reached again",
        Some(MemberChange::Refused) => "did not take a message:",
        Some(MemberChange::Dropped) => "does not get its oldest messages:",
        None => "changed",
    }
}

/// A row that has just come.
pub fn format_row(row: &ChannelRow) -> String {
    format_row_at(row, local_time::live_time)
}

/// A row of the history.
pub fn format_past_row(row: &ChannelRow) -> String {
    format_row_at(row, local_time::past_clock)
}

fn format_row_at(row: &ChannelRow, format_time: fn(&str) -> String) -> String {
    let at = row.timestamp.map(|at| at.to_string()).unwrap_or_default();
    let time = output::paint_text(output::FAINT_STYLE, &format_time(&at));
    let sender = output::paint_text(output::STRONG_STYLE, &output::escape_controls(&row.sender));
    let text = |text: &Option<String>| output::escape_controls(text.as_deref().unwrap_or_default());
    let content = text(&row.content);
    let name = text(&row.name);
    let id = text(&row.id);
    match row.kind {
        ChannelRowKind::Message => format!("{time} {sender}: {content}"),
        ChannelRowKind::ToolCall => {
            let args = row
                .args
                .as_deref()
                .map(|args| output::escape_controls(args.get()))
                .unwrap_or_default();
            format!(
                "{time} {sender} → {name} {args} {}",
                output::paint_text(output::FAINT_STYLE, &id)
            )
        }
        ChannelRowKind::ToolResult => {
            format!(
                "{time} {sender} ← {content} {}",
                output::paint_text(output::FAINT_STYLE, &id)
            )
        }
        ChannelRowKind::Status if text(&row.status).is_empty() => format!("{time} {sender} · done"),
        ChannelRowKind::Status => format!(
            "{time} {sender} · {}",
            output::paint_text(output::FAINT_STYLE, &text(&row.status))
        ),
        ChannelRowKind::Error => {
            let code = row
                .code
                .as_deref()
                .map(|code| format!(" ({})", output::escape_controls(code)))
                .unwrap_or_default();
            format!(
                "{time} {sender} {}",
                output::paint_text(
                    output::BAD_STYLE,
                    &format!("failed: {}{code}", text(&row.message))
                )
            )
        }
        ChannelRowKind::Member => {
            let change = format_member_change(row.change);
            format!(
                "{time} {}",
                output::paint_text(
                    output::FAINT_STYLE,
                    format!("{name} {change} {}", text(&row.message)).trim_end()
                )
            )
        }
        ChannelRowKind::Artifact => {
            let version = row.version.unwrap_or_default();
            let change = format!("wrote {name}, version {version}");
            format!(
                "{time} {sender} {}",
                output::paint_text(output::FAINT_STYLE, &change)
            )
        }
        ChannelRowKind::File => format!(
            "{time} {sender} {}",
            output::paint_text(output::FAINT_STYLE, &format!("put the file {name}"))
        ),
    }
}
