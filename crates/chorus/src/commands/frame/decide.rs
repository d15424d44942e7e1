//! `chorus decide`: a decision that another session asks for, shown and answered (FRM-39…41).

use super::show;
use super::voice::{self, Seat, Toward, Voice};
use crate::commands::span;
use crate::fail::{Exit, Fail};
use crate::out::{self, FAINT, GOOD, STRONG, harmless, painted};
use crate::{cli::Common, signals::Stop};
use chorus_client::frame::{Frames, Heard, Moments};
use chorus_wire::frame::payload::{AgentBindingMoment, AgentResponse, Question};
use chorus_wire::frame::{Frame, Payload, Scope};
use serde_json::{json, value::RawValue};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The decision, by its frame; otherwise the oldest that is open, or the next that comes
    #[arg(value_name = "FRAME_ID")]
    id: Option<Uuid>,
    /// Take this option, counted from 1
    #[arg(long, value_name = "N", group = "reply")]
    choose: Option<usize>,
    /// Answer in your own words
    #[arg(long, value_name = "TEXT", group = "reply")]
    text: Option<String>,
    /// Do not decide yet; talk about the question first
    #[arg(long, value_name = "TEXT", group = "reply")]
    dialogue: Option<String>,
    /// Only show it
    #[arg(long, group = "reply")]
    show: bool,
    /// How long to wait for a decision to be asked for; otherwise as long as it takes
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    wait: Option<Duration>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let mut stop = Stop::watch()?;
    let seat = Seat::take(common, args.voice.clone()).await?;
    let (kept, mut frames) = seat.client.kept(&seat.speaker, voice::now).await?;
    let mut moments = Moments::default();
    kept.iter().for_each(|frame| moments.hear(frame));
    let wait = args.wait.unwrap_or(Duration::MAX);
    let asked = tokio::select! {
        asked = tokio::time::timeout(wait, next(&mut moments, &mut frames, args.id)) => asked,
        () = stop.asked() => return Ok(()),
    };
    let nothing = |_| {
        Fail::new(
            Exit::Refused,
            "NOTHING_TO_DECIDE",
            "nobody asked for a decision",
        )
    };
    let asked = asked.map_err(nothing)??;
    let Payload::AgentBindingMoment(moment) = &asked.payload else {
        return Ok(());
    };
    present(common, &asked, moment);
    if args.show {
        return Ok(());
    }
    let text = match typed(&args, &moment.question)? {
        Some(text) => text,
        None => tokio::select! {
            text = prompt(&moment.question) => text?,
            elsewhere = decided(&mut moments, &mut frames, asked.frame_id) => {
                elsewhere?;
                return Err(Fail::new(Exit::Refused, "ALREADY_DECIDED", "another session has answered it"));
            }
            () = stop.asked() => return Ok(()),
        },
    };
    let payload = AgentResponse {
        // A moment carries no id of its own; its frame's is the one both sides know.
        query_id: asked.frame_id,
        response_text: text.clone(),
        responder_session_id: seat.speaker.session.to_string(),
        responded_to_frame_id: Some(asked.frame_id),
        answer_attempt_idx: None,
    };
    // To all sessions of the one who asked, so that nobody else is asked again.
    let scope = args
        .toward
        .named()
        .unwrap_or_else(|| Scope::Handle(asked.sender_handle.clone()));
    seat.announce(&scope, payload, json!({ "response_text": text }))
        .await
        .map(|_| ())
}

/// The decision that was named, the oldest open one, or the next that is asked for.
async fn next(moments: &mut Moments, frames: &mut Frames, id: Option<Uuid>) -> Result<Frame, Fail> {
    loop {
        let found = moments
            .open()
            .into_iter()
            .find(|moment| id.is_none_or(|id| moment.frame_id == id));
        if let Some(found) = found {
            return Ok(found.clone());
        }
        if id.is_some() {
            return Err(Fail::new(
                Exit::Refused,
                "NOTHING_TO_DECIDE",
                "it is answered, or the hub no longer keeps it",
            ));
        }
        if let Heard::Frame(frame, _) = frames.next().await? {
            moments.hear(&frame);
        }
    }
}

/// Returns when somebody else has answered.
async fn decided(moments: &mut Moments, frames: &mut Frames, id: Uuid) -> Result<(), Fail> {
    while moments.open().iter().any(|moment| moment.frame_id == id) {
        if let Heard::Frame(frame, _) = frames.next().await? {
            moments.hear(&frame);
        }
    }
    Ok(())
}

/// What the flags say, if they say it.
fn typed(args: &Args, question: &Question) -> Result<Option<String>, Fail> {
    if let Some(number) = args.choose {
        return chosen(question, number)
            .map(Some)
            .ok_or_else(|| Fail::usage(range(question)));
    }
    if let Some(text) = &args.text {
        return match question.takes_free_text() {
            true => Ok(Some(text.clone())),
            false => Err(Fail::usage(
                "this question takes one of its options or a dialogue, no free text",
            )),
        };
    }
    if let Some(text) = &args.dialogue {
        return match question.takes_dialogue() {
            true => Ok(Some(dialogue(text))),
            false => Err(Fail::usage(
                "this question takes one of its options or free text, no dialogue",
            )),
        };
    }
    Ok(None)
}

fn range(question: &Question) -> String {
    format!("choose 1 to {}", question.options.len())
}

/// `2: Roll back`
fn chosen(question: &Question, number: usize) -> Option<String> {
    let option = question.options.get(number.checked_sub(1)?)?;
    Some(format!("{number}: {}", option.label))
}

fn dialogue(text: &str) -> String {
    format!("dialogue: {text}")
}

/// Asks at the terminal until the answer is one that the question takes.
async fn prompt(question: &Question) -> Result<String, Fail> {
    let mut lines: Lines<BufReader<Stdin>> = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let own = if question.takes_free_text() {
            ", or your own words"
        } else {
            ""
        };
        let talk = if question.takes_dialogue() {
            ", or ? and what you want to know first"
        } else {
            ""
        };
        show::aside(false, &format!("{}{own}{talk}:", range(question)));
        let line = lines
            .next_line()
            .await
            .map_err(|e| Fail::usage(format!("standard input: {e}")))?;
        let line = line.ok_or_else(|| {
            Fail::usage("no answer was given; pass --choose, --text or --dialogue")
        })?;
        let line = line.trim();
        if let Ok(number) = line.parse() {
            if let Some(text) = chosen(question, number) {
                return Ok(text);
            }
        } else if let Some(asked) = line.strip_prefix('?') {
            if question.takes_dialogue() && !asked.trim().is_empty() {
                return Ok(dialogue(asked.trim()));
            }
        } else if question.takes_free_text() && !line.is_empty() {
            return Ok(line.to_owned());
        }
    }
}

fn present(common: &Common, frame: &Frame, moment: &AgentBindingMoment) {
    if common.json {
        if let Ok(raw) = serde_json::from_str::<&RawValue>(frame.text()) {
            out::line(&json!({ "frame": raw }).to_string());
        }
        return;
    }
    let mut lines = vec![format!(
        "{} {}",
        show::speaker(frame),
        painted(FAINT, &frame.frame_id.to_string())
    )];
    lines.push(harmless(&moment.synopsis));
    lines.extend(
        moment
            .findings
            .iter()
            .map(|finding| format!("  · {}", harmless(finding))),
    );
    lines.extend(
        moment
            .recommendations
            .iter()
            .map(|advice| format!("  → {}", harmless(advice))),
    );
    lines.push(harmless(&moment.offer));
    lines.push(painted(STRONG, &harmless(&moment.question.stem)));
    for (place, option) in moment.question.options.iter().enumerate() {
        let recommended = moment.question.recommended_idx == place as u64;
        let mark = if recommended {
            painted(GOOD, " (recommended)")
        } else {
            String::new()
        };
        let label = painted(STRONG, &harmless(&option.label));
        lines.push(format!(
            "  {}. {label}{mark}: {}",
            place + 1,
            harmless(&option.reasoning)
        ));
    }
    lines.iter().for_each(|line| out::line(line));
}
