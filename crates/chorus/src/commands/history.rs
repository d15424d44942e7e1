//! `chorus history`: prints past messages from the local files or from the hub (SKL-26, TRN-56).

use crate::fail::{ExitKind, Fail};
use crate::{agent_names, cli::CommonArgs, command_client, command_client::CommandClient, output};
use chorus_client::files::{HistoryLine, HistoryStore, history::MessageDirection};
use chorus_wire::{message::HistoryRow, time::UnixMicros};
use serde_json::value::RawValue;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only messages exchanged with this agent
    #[arg(value_name = "NAME")]
    peer: Option<String>,
    /// From this time on (RFC 3339); with --remote also after this id
    #[arg(long, value_name = "INSTANT")]
    since: Option<String>,
    /// Ask the hub instead of the local files
    #[arg(long)]
    remote: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    if args.remote {
        print_remote(common, &args).await
    } else {
        print_local(common, &args).await
    }
}

async fn print_local(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let history = HistoryStore::open_folder(command_client::identity_files(common)?.history);
    let since = match &args.since {
        None => None,
        Some(text) => {
            let instant = UnixMicros::parse(text);
            Some(instant.ok_or_else(|| {
                Fail::usage_error("--since takes an instant such as 2026-03-22T04:30:00Z")
            })?)
        }
    };
    let mut lines = history.all_lines()?;
    if let Some(name) = &args.peer {
        let peer = find_peer(common, name, &lines).await?;
        lines.retain(|line| line.peer == peer);
    }
    let is_too_old = |line: &HistoryLine| {
        UnixMicros::parse(&line.ts).is_some_and(|at| since.is_some_and(|since| at < since))
    };
    lines.retain(|line| !is_too_old(line));
    if lines.is_empty() {
        let text = "no messages in the local files; chorus history --remote asks the hub";
        output::print_aside(common.json, text);
    }
    for line in &lines {
        output::print_result(common.json, line, || {
            format_line(&line.ts, line.dir, &line.peer, &line.envelope)
        });
    }
    Ok(())
}

/// The peer of the local files that has this name. A name without messages is looked up at the hub, if it answers.
async fn find_peer(common: &CommonArgs, name: &str, lines: &[HistoryLine]) -> Result<String, Fail> {
    agent_names::check_expanded(name)?;
    let mut peers: Vec<&str> = lines
        .iter()
        .map(|line| line.peer.as_str())
        .filter(|peer| agent_names::has_name(peer, name))
        .collect();
    peers.sort_unstable();
    peers.dedup();
    match peers.as_slice() {
        [peer] => Ok((*peer).to_owned()),
        [] => {
            let client = command_client::open_directory_client(common)?;
            match agent_names::resolve_agent(&client, name).await {
                Err(fail) if fail.exit_kind() == ExitKind::Refused => Err(fail),
                Err(_) => Ok(name.to_owned()),
                Ok(agent_id) => Ok(agent_id),
            }
        }
        several => Err(Fail::usage_error(format!(
            "{name} is one of {}; write the whole name",
            several.join(", ")
        ))),
    }
}

async fn print_remote(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let me = &command.credentials.agent_id;
    let wanted = match &args.peer {
        Some(name) => Some(agent_names::resolve_or_keep(&command.client, name).await?),
        None => None,
    };
    let mut is_empty = true;
    let mut history = command.client.read_history(args.since.clone());
    while let Some(rows) = history.next_page().await? {
        for row in &rows {
            let (dir, peer) = peer_side(me, row);
            if wanted.as_deref().is_none_or(|wanted| wanted == peer) {
                is_empty = false;
                output::print_result(common.json, row, || {
                    format_line(&row.timestamp.to_string(), dir, peer, &row.envelope)
                });
            }
        }
    }
    if is_empty {
        output::print_aside(common.json, "the hub has no such messages");
    }
    Ok(())
}

/// The direction and the peer of a message. A message to itself counts as received.
pub fn peer_side<'a>(me: &str, row: &'a HistoryRow) -> (MessageDirection, &'a str) {
    if row.receiver_id == me {
        (MessageDirection::Received, &row.sender_id)
    } else {
        (MessageDirection::Sent, &row.receiver_id)
    }
}

fn format_line(ts: &str, dir: MessageDirection, peer: &str, envelope: &RawValue) -> String {
    let arrow = match dir {
        MessageDirection::Sent => "→",
        MessageDirection::Received => "←",
    };
    let time = output::paint_text(output::FAINT_STYLE, &crate::local_time::date_time(ts));
    let peer = output::paint_text(output::STRONG_STYLE, &output::escape_controls(peer));
    let envelope: serde_json::Value = serde_json::from_str(envelope.get()).unwrap_or_default();
    format!(
        "{time} {arrow} {peer}: {}",
        output::escape_controls(envelope["original_text"].as_str().unwrap_or_default())
    )
}
