//! `chorus frame`: a frame of any kind, its payload as JSON; with --wait also the answers to it.

use super::ask::collect_answers;
use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use super::watch;
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail, stop_signal::StopSignal};
use chorus_wire::frame::{Frame, FrameKind, Payload};
use chorus_wire::limits;
use serde_json::json;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One of the fifteen kinds, such as agent_binding_moment
    #[arg(value_name = "KIND", value_parser = watch::parse_kind)]
    kind: FrameKind,
    /// A file with the payload; otherwise standard input
    #[arg(value_name = "FILE", default_value = "-")]
    payload: PathBuf,
    /// Wait this long for answers to it, and end with the first one
    #[arg(long, value_name = "TIME", value_parser = duration::parse_duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    toward: ScopeArgs,
    #[command(flatten)]
    voice: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    let payload_text = read_text(&args.payload, limits::FRAME_BYTES)?;
    let payload =
        Payload::parse(args.kind, &payload_text).map_err(|e| Fail::usage_error(e.message))?;
    let context = FrameContext::open(common, args.voice).await?;
    let scope = context.resolve_scope(&args.toward);
    let frame = context.build_frame(&scope, payload)?;
    let mut answers = match args.wait {
        Some(wait) => Some((context.open_answers(FrameKind::AgentResponse).await?, wait)),
        None => None,
    };
    let sent = context.submit_frame(&scope, frame).await?;
    context.print_sent(&sent, json!({}));
    if let Some((answers, wait)) = &mut answers {
        let id = sent.frame.frame_id;
        let is_ours = |frame: &Frame| {
            matches!(&frame.payload, Payload::AgentResponse(answer)
                if answer.responded_to_frame_id == Some(id) || answer.query_id == id)
        };
        collect_answers(common, answers, is_ours, *wait, 1, stop).await?;
    }
    Ok(())
}

/// A file, or standard input for `-`, of at most so many bytes.
pub fn read_text(source: &std::path::Path, most: usize) -> Result<String, Fail> {
    let name = source.display();
    let read_error = |e: std::io::Error| Fail::usage_error(format!("{name}: {e}"));
    let mut text = String::new();
    let read_limit = most as u64 + 1;
    if source.as_os_str() == "-" {
        std::io::stdin()
            .lock()
            .take(read_limit)
            .read_to_string(&mut text)
            .map_err(read_error)?;
    } else {
        std::fs::File::open(source)
            .map_err(read_error)?
            .take(read_limit)
            .read_to_string(&mut text)
            .map_err(read_error)?;
    }
    if text.len() > most {
        return Err(Fail::usage_error(format!(
            "{name}: longer than {most} bytes; put it elsewhere and refer to it"
        )));
    }
    Ok(text)
}
