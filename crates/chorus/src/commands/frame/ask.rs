//! `chorus ask`: sends a question to other sessions and prints the answers that come within a time window (FRM-36).

use super::collect_answers::{AnswerWait, collect_answers};
use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail, stop_signal::StopSignal};
use chorus_client::frame::{FrameStream, random_uuid};
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
    let wait = AnswerWait {
        window: args.window,
        max_count: args.count.unwrap_or(usize::MAX),
        decision: None,
    };
    collect_answers(&context, &mut answers, is_ours, &wait, stop)
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
