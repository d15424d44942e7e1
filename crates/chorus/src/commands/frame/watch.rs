//! `chorus watch`: prints the frames for this session, live; it resumes after a disconnect and reports gaps.

use super::watch_filter::WatchFilter;
use super::{format, frame_context, frame_context::FrameContext, frame_context::SenderArgs};
use crate::fail::Fail;
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, output};
use chorus_client::backoff::Backoff;
use chorus_client::frame::FrameStreamEvent;
use chorus_wire::cursor::Cursor;
use chorus_wire::frame::{Frame, FrameFilter, FrameKind};
use serde::Serialize;
use serde_json::{json, value::RawValue};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only frames that match every clause, such as sender:bob,tool:cc
    #[arg(long, value_name = "FILTER", value_parser = WatchFilter::parse, default_value = "")]
    filter: WatchFilter,
    /// Only these kinds; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = parse_kind)]
    kinds: Vec<FrameKind>,
    /// Start after this id; 0 is everything the hub still keeps
    #[arg(long, value_name = "ID", value_parser = parse_cursor)]
    since: Option<Cursor>,
    /// Stop after this many frames
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after one
    #[arg(long, conflicts_with = "count")]
    once: bool,
    #[command(flatten)]
    sender: SenderArgs,
}

pub fn parse_kind(text: &str) -> Result<FrameKind, String> {
    FrameKind::parse(text).ok_or_else(|| format!("one of {}", FrameKind::TEXTS.join(", ")))
}

fn parse_cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

/// A frame as a line of JSON, with its submitted text unchanged.
#[derive(Serialize)]
struct WatchLine<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    frame: &'a RawValue,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    let context = tokio::select! {
        context = open_when_reachable(common, &args.sender) => context?,
        () = stop.wait_requested() => return Ok(()),
    };
    // The hub filters one kind. Several `kind` clauses would all have to match, so they are filtered here.
    let filter = args.filter.resolve(&context.client).await?;
    let filter = match args.kinds.as_slice() {
        [only] => narrow_filter(&filter, *only)?,
        [] | [_, ..] => filter,
    };
    let mut remaining = if args.once {
        1
    } else {
        args.count.unwrap_or(u64::MAX)
    };
    let mut frames = context.client.open_frame_stream(
        &context.sender,
        &filter,
        args.since,
        frame_context::current_time,
    );
    while remaining > 0 {
        let event = tokio::select! {
            event = frames.next() => event?,
            () = stop.wait_requested() => break,
        };
        match event {
            FrameStreamEvent::Opened(_) => {
                let handle = &context.sender.handle;
                let hub = context.client.base_url();
                crate::output::print_aside(common.json, &format!("watching {handle} at {hub}"));
            }
            FrameStreamEvent::OpenItems(_) => {}
            FrameStreamEvent::Gap => {
                output::print_result(common.json, &json!({ "event": "resume-gap" }), || {
                    output::paint_text(
                        output::BAD_STYLE,
                        "some frames were missed: they are no longer kept",
                    )
                })
            }
            FrameStreamEvent::Frame(frame, id) => {
                if args.kinds.is_empty() || args.kinds.contains(&frame.kind()) {
                    print_frame(common, &frame, id);
                    remaining -= 1;
                }
            }
        }
    }
    Ok(())
}

/// Waits for a hub that does not answer yet, as it does later when the hub goes away.
async fn open_when_reachable<'a>(
    common: &'a CommonArgs,
    sender: &SenderArgs,
) -> Result<FrameContext<'a>, Fail> {
    let backoff = Backoff::default();
    let mut failures = 0;
    loop {
        let fail = match FrameContext::open(common, sender.clone()).await {
            Err(fail) if fail.is_connection_lost() => fail,
            opened => return opened,
        };
        failures += 1;
        if failures == 1 {
            output::print_aside(common.json, &format!("waiting for the hub: {fail}"));
        }
        tokio::time::sleep(backoff.delay_after(failures)).await;
    }
}

fn narrow_filter(filter: &FrameFilter, kind: FrameKind) -> Result<FrameFilter, Fail> {
    let text = filter.to_string();
    let text = if text.is_empty() {
        format!("kind:{kind}")
    } else {
        format!("{text},kind:{kind}")
    };
    FrameFilter::parse(&text).map_err(|e| Fail::usage_error(e.message))
}

fn print_frame(common: &CommonArgs, frame: &Frame, id: Option<Cursor>) {
    let Ok(raw) = serde_json::from_str::<&RawValue>(frame.submitted_json()) else {
        return;
    };
    let line = WatchLine {
        event: frame.kind().as_str(),
        id: id.map(|id| id.to_string()),
        frame: raw,
    };
    output::print_result(common.json, &line, || format::format_frame(frame));
}
