//! `chorus answer`: the answer to a question that this session heard.

use super::voice::{self, Seat, Toward, Voice};
use crate::cli::Common;
use crate::fail::{Exit, Fail};
use chorus_wire::frame::payload::AgentResponse;
use chorus_wire::frame::{Frame, Payload};
use serde_json::json;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question's id, as `watch` shows it
    query_id: Uuid,
    /// The answer
    #[arg(required = true)]
    text: Vec<String>,
    /// Which attempt at an answer this is, counted from 1
    #[arg(long, value_name = "N")]
    attempt: Option<u64>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    // Where answers go is said in the question; without it, only if the user says where.
    let (kept, _) = seat.client.kept(&seat.speaker, voice::now).await?;
    let question = kept.iter().find_map(|frame| asked(frame, args.query_id));
    let scope = args
        .toward
        .named()
        .or_else(|| question.as_ref().map(|(_, scope)| scope.clone()));
    let scope = scope.ok_or_else(|| {
        let why =
            "the hub no longer keeps that question; say where its answers go with --scope or --to";
        Fail::new(Exit::Refused, "UNKNOWN_QUESTION", why)
    })?;
    let payload = AgentResponse {
        query_id: args.query_id,
        response_text: args.text.join(" "),
        responder_session_id: seat.speaker.session.to_string(),
        responded_to_frame_id: question.map(|(frame_id, _)| frame_id),
        answer_attempt_idx: args.attempt,
    };
    seat.announce(&scope, payload, json!({ "query_id": args.query_id }))
        .await
        .map(|_| ())
}

fn asked(frame: &Frame, id: Uuid) -> Option<(Uuid, chorus_wire::frame::Scope)> {
    let Payload::AgentQuery(query) = &frame.payload else {
        return None;
    };
    (query.query_id == id).then(|| (frame.frame_id, query.response_scope.clone()))
}
