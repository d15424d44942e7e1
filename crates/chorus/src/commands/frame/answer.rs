//! `chorus answer`: answers a question of another session.

use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::cli::CommonArgs;
use crate::fail::{ExitKind, Fail};
use chorus_wire::frame::payload::AgentResponse;
use chorus_wire::frame::{Frame, FramePayload};
use serde_json::json;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question's id, as shown by `watch`
    query_id: Uuid,
    /// The answer
    #[arg(required = true)]
    text: Vec<String>,
    /// Which attempt at an answer this is, counted from 1
    #[arg(long, value_name = "N")]
    attempt: Option<u64>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    // The question names the scope of its answers. If the hub no longer has the question, the user must name it.
    let (replayed, _) = context
        .client
        .replay_frames(&context.sender, frame_context::current_time)
        .await?;
    let question = replayed
        .iter()
        .find_map(|frame| find_query(frame, args.query_id));
    let scope = args
        .target
        .explicit_scope(&context.client)
        .await?
        .or_else(|| question.as_ref().map(|(_, scope)| scope.clone()));
    let scope = scope.ok_or_else(|| {
        let message =
            "the hub no longer keeps that question; say where its answers go with --scope or --to";
        Fail::new(ExitKind::Refused, "UNKNOWN_QUESTION", message)
    })?;
    let payload = AgentResponse {
        query_id: args.query_id,
        response_text: args.text.join(" "),
        responder_session_id: context.sender.session.to_string(),
        responded_to_frame_id: question.map(|(frame_id, _)| frame_id),
        answer_attempt_idx: args.attempt,
    };
    context
        .send_and_print(&scope, payload, json!({ "query_id": args.query_id }))
        .await
        .map(|_| ())
}

fn find_query(frame: &Frame, id: Uuid) -> Option<(Uuid, chorus_wire::frame::FrameScope)> {
    let FramePayload::AgentQuery(query) = &frame.payload else {
        return None;
    };
    (query.query_id == id).then(|| (frame.frame_id, query.response_scope.clone()))
}
