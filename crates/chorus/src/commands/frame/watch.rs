//! `chorus watch`: what the sessions of your handle are told, live; it resumes, and says so when something was missed.

use super::{show, voice, voice::Seat};
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, out};
use chorus_client::frame::Heard;
use chorus_wire::cursor::Cursor;
use chorus_wire::frame::{Filter, Frame, Kind};
use serde::Serialize;
use serde_json::{json, value::RawValue};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only frames for which every clause holds, such as sender:~bob,tool:cc
    #[arg(long, value_name = "FILTER", value_parser = filter, default_value = "")]
    filter: Filter,
    /// Only these kinds; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// Begin after this id; 0 is everything the hub still keeps
    #[arg(long, value_name = "ID", value_parser = cursor)]
    since: Option<Cursor>,
    /// End after this many frames
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after one
    #[arg(long, conflicts_with = "count")]
    once: bool,
    #[command(flatten)]
    voice: voice::Voice,
}

fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|e| e.message)
}

pub fn kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| format!("one of {}", Kind::TEXTS.join(", ")))
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

/// A frame as a line of JSON, its text as it was submitted.
#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    frame: &'a RawValue,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let mut stop = Stop::watch()?;
    let seat = Seat::take(common, args.voice).await?;
    // One kind is the hub's to filter; several cannot all hold at once, so they are picked here.
    let filter = match args.kinds.as_slice() {
        [only] => narrowed(&args.filter, *only)?,
        [] | [_, ..] => args.filter,
    };
    let mut left = if args.once {
        1
    } else {
        args.count.unwrap_or(u64::MAX)
    };
    let mut frames = seat
        .client
        .frames(&seat.speaker, &filter, args.since, voice::now)
        .await;
    while left > 0 {
        let heard = tokio::select! {
            heard = frames.next() => heard?,
            () = stop.asked() => break,
        };
        match heard {
            Heard::Opened(_) => {
                let (who, here) = (&seat.speaker.handle, seat.client.base());
                show::aside(common.json, &format!("watching {who} at {here}"));
            }
            Heard::Gap => out::say(common.json, &json!({ "event": "resume-gap" }), || {
                out::painted(out::BAD, "some frames were missed: they are no longer kept")
            }),
            Heard::Frame(frame, id) => {
                if args.kinds.is_empty() || args.kinds.contains(&frame.kind()) {
                    tell(common, &frame, id);
                    left -= 1;
                }
            }
        }
    }
    Ok(())
}

fn narrowed(filter: &Filter, kind: Kind) -> Result<Filter, Fail> {
    let text = filter.to_string();
    let text = if text.is_empty() {
        format!("kind:{kind}")
    } else {
        format!("{text},kind:{kind}")
    };
    Filter::parse(&text).map_err(|e| Fail::usage(e.message))
}

fn tell(common: &Common, frame: &Frame, id: Option<Cursor>) {
    let Ok(raw) = serde_json::from_str::<&RawValue>(frame.text()) else {
        return;
    };
    let line = Line {
        event: frame.kind().as_str(),
        id: id.map(|id| id.to_string()),
        frame: raw,
    };
    out::say(common.json, &line, || show::frame(frame));
}
