//! `chorus ask`: a question to other sessions, and the answers that come within a window (FRM-36).

use super::show;
use super::voice::{self, Seat, Toward, Voice};
use crate::commands::span;
use crate::{cli::Common, fail::Fail, out, signals::Stop};
use chorus_client::frame::{Frames, Heard, new_id};
use chorus_wire::frame::payload::AgentQuery;
use chorus_wire::frame::{Filter, Frame, Kind, Payload};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question
    #[arg(required = true)]
    text: Vec<String>,
    /// How long to wait for answers
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    window: Duration,
    /// End after so many answers
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let stop = Stop::watch()?;
    let seat = Seat::take(common, args.voice).await?;
    let query_id = new_id();
    let payload = AgentQuery {
        query_text: args.text.join(" "),
        query_id,
        response_scope: seat.speaker.here(),
        timeout_ms: span::millis(args.window),
    };
    let scope = seat.toward(&args.toward);
    let frame = seat.frame(&scope, payload)?;
    // Listening first: an answer may come before the hub has told us that the question went out.
    let mut answers = seat.answers(Kind::AgentResponse).await?;
    let said = seat.submit(&scope, frame).await?;
    let more = json!({ "query_id": query_id });
    if common.json {
        seat.told(&said, more);
    } else {
        show::aside(
            false,
            &format!(
                "asked {query_id}, sessions that heard it: {}",
                said.submitted.recipient_count
            ),
        );
    }
    let ours = |frame: &Frame| matches!(&frame.payload, Payload::AgentResponse(answer) if answer.query_id == query_id);
    collect(
        common,
        &mut answers,
        ours,
        args.window,
        args.count.unwrap_or(usize::MAX),
        stop,
    )
    .await
    .map(|_| ())
}

impl Seat<'_> {
    /// The open stream of this session, narrowed to one kind.
    pub async fn answers(&self, kind: Kind) -> Result<Frames, Fail> {
        let filter = Filter::parse(&format!("kind:{kind}")).map_err(|e| Fail::usage(e.message))?;
        let mut frames = self
            .client
            .frames(&self.speaker, &filter, None, voice::now)
            .await;
        frames.opened().await?;
        Ok(frames)
    }
}

/// Prints what `ours` picks until the window closes, enough has come, or somebody interrupts.
pub async fn collect(
    common: &Common,
    frames: &mut Frames,
    ours: impl Fn(&Frame) -> bool,
    window: Duration,
    most: usize,
    mut stop: Stop,
) -> Result<usize, Fail> {
    let end = tokio::time::sleep(window);
    tokio::pin!(end);
    let mut count = 0;
    while count < most {
        let heard = tokio::select! {
            heard = frames.next() => heard?,
            () = &mut end => break,
            () = stop.asked() => break,
        };
        if let Heard::Frame(frame, _) = heard
            && ours(&frame)
        {
            tell(common, &frame);
            count += 1;
        }
    }
    if count == 0 {
        show::aside(common.json, "nobody answered");
    }
    Ok(count)
}

/// An answer and who gave it.
fn tell(common: &Common, frame: &Frame) {
    let sender = &frame.sender_handle;
    if let Payload::AgentResponse(answer) = &frame.payload {
        let value = json!({ "sender_handle": sender, "responder_session_id": answer.responder_session_id,
            "response_text": answer.response_text, "frame_id": frame.frame_id });
        out::say(common.json, &value, || {
            let who = format!("{sender} {}", out::harmless(&answer.responder_session_id));
            format!(
                "{}: {}",
                out::painted(out::STRONG, &who),
                out::harmless(&answer.response_text)
            )
        });
    } else if let Payload::PeerDiagnosticResponse(answer) = &frame.payload {
        let value = json!({ "sender_handle": sender, "finding": answer.finding, "remediation": answer.remediation,
            "substrate_refs": answer.substrate_refs, "frame_id": frame.frame_id });
        out::say(common.json, &value, || show::frame(frame));
    }
}
