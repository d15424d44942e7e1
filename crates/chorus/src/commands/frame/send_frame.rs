//! `chorus frame`: sends a frame of any kind with a JSON payload; with `--wait` it also prints the answer.

use super::collect_answers::{AnswerWait, KeptDecision, collect_answers};
use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use super::watch;
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail, stop_signal::StopSignal};
use chorus_wire::frame::redact::redact_payload;
use chorus_wire::frame::{Frame, FrameKind, FramePayload};
use chorus_wire::limits;
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// One of the fifteen kinds, such as agent_binding_moment
    #[arg(value_name = "KIND", value_parser = watch::parse_kind)]
    kind: FrameKind,
    /// A file with the payload; default: standard input. In a diagnostic what looks like a secret is redacted
    #[arg(value_name = "FILE", default_value = "-")]
    payload: PathBuf,
    /// Wait this long for an answer, and stop after the first one
    #[arg(long, value_name = "TIME", value_parser = duration::parse_duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    let payload_text = read_text(&args.payload, limits::FRAME_BYTES)?;
    let payload = parse_payload(args.kind, &payload_text)?;
    let mut context = FrameContext::open(common, args.sender).await?;
    if let (FrameKind::AgentBindingMoment, Some(wait)) = (args.kind, args.wait) {
        // The decision is open for as long as its sender waits.
        context
            .sender
            .ttl_ms
            .get_or_insert(duration::as_millis(wait).clamp(1, limits::SAFE_INTEGER_MAX));
    }
    let scope = context.resolve_scope(&args.target).await?;
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
            matches!(&frame.payload, FramePayload::AgentResponse(answer)
                if answer.responded_to_frame_id == Some(id) || answer.query_id == id)
        };
        let wait = AnswerWait {
            window: *wait,
            max_count: 1,
            decision: KeptDecision::from_sent(&scope, &sent),
        };
        collect_answers(&context, answers, is_ours, &wait, stop).await?;
    }
    Ok(())
}

/// The payload; that of a diagnostic without what looks like a secret (FRM-107).
fn parse_payload(kind: FrameKind, text: &str) -> Result<FramePayload, Fail> {
    let parse =
        |text: &str| FramePayload::parse(kind, text).map_err(|e| Fail::usage_error(e.message));
    let payload = parse(text)?;
    if !kind.is_diagnostic() {
        return Ok(payload);
    }
    let fields = serde_json::from_str(text).map_err(|e| Fail::usage_error(e.to_string()))?;
    parse(&Value::Object(redact_payload(fields)).to_string())
}

/// Reads a file, or standard input for `-`, of at most `max_bytes`.
pub fn read_text(source: &std::path::Path, max_bytes: usize) -> Result<String, Fail> {
    let name = source.display();
    let read_error = |e: std::io::Error| Fail::usage_error(format!("{name}: {e}"));
    let mut text = String::new();
    let read_limit = max_bytes as u64 + 1;
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
    if text.len() > max_bytes {
        return Err(Fail::usage_error(format!(
            "{name}: longer than {max_bytes} bytes; put it elsewhere and refer to it"
        )));
    }
    Ok(text)
}
