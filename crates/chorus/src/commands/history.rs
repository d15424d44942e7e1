//! `chorus history`: prints past messages from the local files or from the hub (SKL-26, TRN-56).

use crate::{cli::CommonArgs, fail::Fail, output, session, session::ClientSession};
use chorus_client::files::{HistoryLine, HistoryStore, history::MessageDirection};
use chorus_wire::{message::HistoryRow, time::UnixMicros};
use serde_json::value::RawValue;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only messages exchanged with this agent
    #[arg(value_name = "NAME@HOST")]
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
        print_local(common, &args)
    }
}

fn print_local(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let history = HistoryStore::open_folder(session::identity_files(common)?.history);
    let since = match &args.since {
        None => None,
        Some(text) => {
            let instant = UnixMicros::parse(text);
            Some(instant.ok_or_else(|| {
                Fail::usage_error("--since takes an instant such as 2026-03-22T04:30:00Z")
            })?)
        }
    };
    let lines = match &args.peer {
        Some(peer) => history.peer_lines(peer)?,
        None => history.all_lines()?,
    };
    let is_too_old = |line: &HistoryLine| {
        UnixMicros::parse(&line.ts).is_some_and(|at| since.is_some_and(|since| at < since))
    };
    for line in lines.iter().filter(|line| !is_too_old(line)) {
        output::print_result(common.json, line, || {
            format_line(&line.ts, line.dir, &line.peer, &line.envelope)
        });
    }
    Ok(())
}

async fn print_remote(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let me = &session.credentials.agent_id;
    let mut history = session.client.read_history(args.since.clone());
    while let Some(rows) = history.next_page().await? {
        for row in &rows {
            let (dir, peer) = peer_side(me, row);
            if args.peer.as_deref().is_none_or(|wanted| wanted == peer) {
                output::print_result(common.json, row, || {
                    format_line(&row.timestamp.to_string(), dir, peer, &row.envelope)
                });
            }
        }
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
    let time = output::paint_text(output::FAINT_STYLE, &output::whole_seconds(ts));
    let peer = output::paint_text(output::STRONG_STYLE, &output::escape_controls(peer));
    let envelope: serde_json::Value = serde_json::from_str(envelope.get()).unwrap_or_default();
    format!(
        "{time} {arrow} {peer}: {}",
        output::escape_controls(envelope["original_text"].as_str().unwrap_or_default())
    )
}
