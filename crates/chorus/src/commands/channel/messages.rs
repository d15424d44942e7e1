//! `chorus channel post|tail|history`: posts messages and reads a channel's history.

use super::{find_channel, format, parse_cursor};
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::channel::mention::{self, MemberName};
use chorus_wire::cursor::Cursor;
use serde_json::value::RawValue;
use std::io::Read;

#[derive(Debug, clap::Args)]
pub struct TailArgs {
    channel: String,
    /// Start after this cursor; 0 is the beginning
    #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
    since: Option<Cursor>,
    /// Stop after this many lines
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// The arguments as text, or standard input for a single `-`.
pub fn read_text(words: &[String]) -> Result<String, Fail> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Structured content of a message, unchanged.
#[derive(Clone, Debug)]
pub struct PartsArg(pub Box<RawValue>);

/// Reads the value of `--parts`: a JSON array, or `@FILE` with one.
pub fn read_parts(text: &str) -> Result<PartsArg, String> {
    let content = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?,
        None => text.to_owned(),
    };
    RawValue::from_string(content.trim().to_owned())
        .map(PartsArg)
        .map_err(|e| e.to_string())
}

pub async fn post_message(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    words: &[String],
    parts: Option<&PartsArg>,
) -> Result<(), Fail> {
    let text = read_text(words)?;
    let row = find_channel(client, channel)
        .await?
        .post_parts(&text, parts.map(|parts| &*parts.0))
        .await?;
    output::print_result(common.json, &row, || format::format_row(&row));
    warn_of_unknown_mentions(common, channel, &text, &row);
    Ok(())
}

/// Says which mentions reach no member. The hub takes any text, so an agent whose name is misspelt would never hear of it, and
/// its sender would wait. A program reads the same from the row's `mentions`.
fn warn_of_unknown_mentions(common: &CommonArgs, channel: &str, text: &str, row: &ChannelRow) {
    let unknown = find_unknown_mentions(text, row);
    if unknown.is_empty() {
        return;
    }
    let names = unknown.join(", @");
    let quote = if channel.contains(' ') { "'" } else { "" };
    let warning = format!(
        "no joined member of {channel} is called @{names}; its members: chorus channel show {quote}{channel}{quote}"
    );
    output::print_aside(common.json, &warning);
}

/// The names that a posted text mentions and that no joined member has. The hub answers with the members that it
/// mentions.
fn find_unknown_mentions(text: &str, row: &ChannelRow) -> Vec<String> {
    let known: Vec<String> = row.mentions.iter().map(MemberName::folded_name).collect();
    let mut names = mention::find_mentions(text);
    names.retain(|name| !known.contains(name));
    names
}

pub async fn tail_channel(
    common: &CommonArgs,
    client: &HubClient,
    args: TailArgs,
) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    let mut stream = find_channel(client, &args.channel)
        .await?
        .open_stream(args.since);
    let mut remaining = args.count.unwrap_or(u64::MAX);
    while remaining > 0 {
        let event = tokio::select! {
            event = stream.next() => event?,
            () = stop.wait_requested() => break,
        };
        if event.name == "connected" {
            continue;
        }
        if let Some(gap) = event.parse_gap() {
            let line = serde_json::json!({ "type": "gap", "from": gap.from, "to": gap.to });
            output::print_result(common.json, &line, || output::format_gap(gap));
            continue;
        }
        match serde_json::from_str::<ChannelRow>(&event.data) {
            // With --json the hub's own JSON is printed, so that fields unknown to this client are kept.
            Ok(_) if common.json => output::print_json(&event.data),
            Ok(row) => output::print_line(&format::format_row(&row)),
            Err(e) => {
                tracing::warn!("an event of kind {} was not understood: {e}", event.name);
                continue;
            }
        }
        remaining -= 1;
    }
    Ok(())
}

pub async fn print_history(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    since: Option<Cursor>,
    limit: usize,
) -> Result<(), Fail> {
    let rows = find_channel(client, channel)
        .await?
        .fetch_history(since, limit)
        .await?;
    if rows.is_empty() {
        output::print_aside(common.json, "the channel has no messages yet");
    }
    for row in rows {
        output::print_result(common.json, &row, || format::format_past_row(&row));
    }
    Ok(())
}
