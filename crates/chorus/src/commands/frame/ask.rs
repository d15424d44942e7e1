//! `chorus ask`: sends a question to other sessions and prints the answers that come within a time window (FRM-36).

use super::format;
use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output, stop_signal::StopSignal};
use chorus_client::frame::{FrameStream, FrameStreamEvent, random_uuid};
use chorus_wire::frame::payload::AgentQuery;
use chorus_wire::frame::{Frame, FrameFilter, FrameKind, FramePayload};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question
    #[arg(required = true)]
    text: Vec<String>,
    /// How long to wait for answers
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse_duration)]
    window: Duration,
    /// Stop after this many answers
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    let context = FrameContext::open(common, args.sender).await?;
    let query_id = random_uuid();
    let payload = AgentQuery {
        query_text: args.text.join(" "),
        query_id,
        response_scope: context.sender.session_scope(),
        timeout_ms: duration::as_millis(args.window),
    };
    let scope = context.resolve_scope(&args.target).await?;
    let frame = context.build_frame(&scope, payload)?;
    // Open the stream first: an answer may come before the hub's reply to the submission.
    let mut answers = context.open_answers(FrameKind::AgentResponse).await?;
    let sent = context.submit_frame(&scope, frame).await?;
    let more = json!({ "query_id": query_id });
    if common.json {
        context.print_sent(&sent, more);
    } else {
        crate::output::print_aside(
            false,
            &format!(
                "asked {query_id}, heard by {}",
                sent.submitted.describe_count()
            ),
        );
    }
    let is_ours = |frame: &Frame| matches!(&frame.payload, FramePayload::AgentResponse(answer) if answer.query_id == query_id);
    collect_answers(
        common,
        &mut answers,
        is_ours,
        args.window,
        args.count.unwrap_or(usize::MAX),
        stop,
    )
    .await
    .map(drop)
}

impl FrameContext<'_> {
    /// Opens this session's stream with a filter for one kind.
    pub async fn open_answers(&self, kind: FrameKind) -> Result<FrameStream, Fail> {
        let filter = FrameFilter::parse(&format!("kind:{kind}"))
            .map_err(|e| Fail::usage_error(e.message))?;
        let mut frames =
            self.client
                .open_frame_stream(&self.sender, &filter, None, frame_context::current_time);
        frames.wait_opened().await?;
        Ok(frames)
    }
}

/// Prints frames that match `is_ours` until the window closes, `max_count` is reached, or the user interrupts. Without an
/// answer in the window the command fails with its own exit code, so that a script can tell.
pub async fn collect_answers(
    common: &CommonArgs,
    frames: &mut FrameStream,
    is_ours: impl Fn(&Frame) -> bool,
    window: Duration,
    max_count: usize,
    mut stop: StopSignal,
) -> Result<usize, Fail> {
    let end = tokio::time::sleep(window);
    tokio::pin!(end);
    let mut count = 0;
    while count < max_count {
        let event = tokio::select! {
            event = frames.next() => event?,
            () = &mut end => break,
            () = stop.wait_requested() => return Ok(count),
        };
        if let FrameStreamEvent::Frame(frame, _) = event
            && is_ours(&frame)
        {
            print_answer(common, &frame);
            count += 1;
        }
    }
    if count == 0 {
        let waited = duration::format_duration(window);
        return Err(Fail::new(
            ExitKind::TimedOut,
            "TIMED_OUT",
            format!("no answer within {waited}"),
        ));
    }
    Ok(count)
}

/// Prints an answer with its sender.
fn print_answer(common: &CommonArgs, frame: &Frame) {
    let sender = &frame.sender_handle;
    if let FramePayload::AgentResponse(answer) = &frame.payload {
        let value = json!({ "sender_handle": sender, "responder_session_id": answer.responder_session_id,
            "response_text": answer.response_text, "frame_id": frame.frame_id });
        output::print_result(common.json, &value, || {
            let responder = format!(
                "{sender} {}",
                output::escape_controls(&answer.responder_session_id)
            );
            format!(
                "{}: {}",
                output::paint_text(output::STRONG_STYLE, &responder),
                output::escape_controls(&answer.response_text)
            )
        });
    } else if let FramePayload::PeerDiagnosticResponse(answer) = &frame.payload {
        let value = json!({ "sender_handle": sender, "finding": answer.finding, "remediation": answer.remediation,
            "substrate_refs": answer.substrate_refs, "frame_id": frame.frame_id });
        output::print_result(common.json, &value, || format::format_frame(frame));
    }
}
