//! `chorus history`: what was said, from the local files or from the hub (SKL-26, TRN-56).

use crate::{cli::Common, fail::Fail, out, session, session::Session};
use chorus_client::files::{History, Line, history::Dir};
use chorus_wire::{message::HistoryRow, time::Micros};
use serde_json::value::RawValue;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what was exchanged with this agent
    #[arg(value_name = "NAME@HOST")]
    peer: Option<String>,
    /// From this instant on (RFC 3339); with --remote also after this id
    #[arg(long, value_name = "INSTANT")]
    since: Option<String>,
    /// Ask the hub instead of the local files
    #[arg(long)]
    remote: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    if args.remote {
        remote(common, &args).await
    } else {
        local(common, &args)
    }
}

fn local(common: &Common, args: &Args) -> Result<(), Fail> {
    let history = History::at(session::place(common)?.history);
    let since = match &args.since {
        None => None,
        Some(text) => {
            let instant = Micros::parse(text);
            Some(instant.ok_or_else(|| {
                Fail::usage("--since takes an instant such as 2026-03-22T04:30:00Z")
            })?)
        }
    };
    let lines = match &args.peer {
        Some(peer) => history.lines(peer)?,
        None => history.all_lines()?,
    };
    let old = |line: &Line| {
        Micros::parse(&line.ts).is_some_and(|at| since.is_some_and(|since| at < since))
    };
    for line in lines.iter().filter(|line| !old(line)) {
        out::say(common.json, line, || {
            human(&line.ts, line.dir, &line.peer, &line.envelope)
        });
    }
    Ok(())
}

async fn remote(common: &Common, args: &Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let me = &session.who.agent_id;
    let mut since = args.since.clone();
    loop {
        let rows = session.client.history(since.as_deref()).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        since = Some(last.id.to_string());
        for row in &rows {
            let (dir, peer) = side(me, row);
            if args.peer.as_deref().is_none_or(|wanted| wanted == peer) {
                out::say(common.json, row, || {
                    human(&row.timestamp.to_string(), dir, peer, &row.envelope)
                });
            }
        }
    }
}

/// A message to oneself counts as received.
pub fn side<'a>(me: &str, row: &'a HistoryRow) -> (Dir, &'a str) {
    if row.receiver_id == me {
        (Dir::Received, &row.sender_id)
    } else {
        (Dir::Sent, &row.receiver_id)
    }
}

fn human(ts: &str, dir: Dir, peer: &str, envelope: &RawValue) -> String {
    let arrow = match dir {
        Dir::Sent => "→",
        Dir::Received => "←",
    };
    let time = out::painted(out::FAINT, &out::seconds(ts));
    let peer = out::painted(out::STRONG, &out::harmless(peer));
    let envelope: serde_json::Value = serde_json::from_str(envelope.get()).unwrap_or_default();
    format!(
        "{time} {arrow} {peer}: {}",
        out::harmless(envelope["original_text"].as_str().unwrap_or_default())
    )
}
