//! What is said in a room: posted, followed, looked up.

use super::{cursor, find, show};
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, out};
use chorus_client::Client;
use chorus_wire::channel::row::Row;
use chorus_wire::cursor::Cursor;
use std::io::Read;

#[derive(Debug, clap::Args)]
pub struct Tail {
    channel: String,
    /// Begin after this cursor; 0 is the beginning
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    since: Option<Cursor>,
    /// End after this many lines
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Words as they were typed, or standard input for a lone `-`.
pub fn text(words: &[String]) -> Result<String, Fail> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Fail::usage(format!("standard input: {e}")))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

pub async fn post(
    common: &Common,
    client: &Client,
    channel: &str,
    words: &[String],
) -> Result<(), Fail> {
    let text = text(words)?;
    let row = find(client, channel).await?.post(&text).await?;
    out::say(common.json, &row, || show::row(&row));
    Ok(())
}

pub async fn tail(common: &Common, client: &Client, args: Tail) -> Result<(), Fail> {
    let mut stop = Stop::watch()?;
    let mut stream = find(client, &args.channel).await?.stream(args.since);
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        let event = tokio::select! {
            event = stream.next() => event?,
            () = stop.asked() => break,
        };
        if event.name == "connected" {
            continue;
        }
        match serde_json::from_str::<Row>(&event.data) {
            // With --json the line is the hub's own, also with what this client does not know of.
            Ok(_) if common.json => out::line(&event.data),
            Ok(row) => out::line(&show::row(&row)),
            Err(e) => {
                tracing::warn!("an event of kind {} was not understood: {e}", event.name);
                continue;
            }
        }
        left -= 1;
    }
    Ok(())
}

pub async fn history(
    common: &Common,
    client: &Client,
    channel: &str,
    since: Option<Cursor>,
    limit: usize,
) -> Result<(), Fail> {
    for row in find(client, channel).await?.history(since, limit).await? {
        out::say(common.json, &row, || show::row(&row));
    }
    Ok(())
}
