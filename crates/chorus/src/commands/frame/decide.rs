//! `chorus decide`: shows and answers a decision (binding moment) that another session asks for (FRM-39…41).

use super::format;
use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::fail::{ExitKind, Fail};
use crate::output::{self, FAINT_STYLE, GOOD_STYLE, STRONG_STYLE, escape_controls, paint_text};
use crate::{cli::CommonArgs, stop_signal::StopSignal};
use chorus_client::frame::{FrameStream, FrameStreamEvent, ParsedOpenItem};
use chorus_wire::frame::payload::{AgentBindingMoment, AgentResponse, DecisionQuestion};
use chorus_wire::frame::{Frame, FrameKind, FramePayload, FrameScope, OpenItemKind};
use serde_json::{json, value::RawValue};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The decision, by its frame id; default: the oldest open one, or the next to arrive
    #[arg(value_name = "FRAME_ID")]
    id: Option<Uuid>,
    /// Choose this option, counted from 1
    #[arg(long, value_name = "N", group = "reply")]
    choose: Option<usize>,
    /// Answer in your own words
    #[arg(long, value_name = "TEXT", group = "reply")]
    text: Option<String>,
    /// Do not decide yet; ask about the question first
    #[arg(long, value_name = "TEXT", group = "reply")]
    dialogue: Option<String>,
    /// Only show it; without an open one this says so, unless --wait is given
    #[arg(long, group = "reply")]
    show: bool,
    /// How long to wait for a decision; default: without limit
    #[arg(long, value_name = "TIME", value_parser = duration::parse_duration)]
    wait: Option<Duration>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    let context = FrameContext::open(common, args.sender.clone()).await?;
    // Opened before the open decisions are read, so that no new one is missed.
    let mut frames = context.open_live_frames().await?;
    let wait = args.wait.unwrap_or(Duration::MAX);
    let moment_frame = match find_moment(&context, args.id).await? {
        Some(found) => found,
        None if args.id.is_some() => {
            return Err(nothing_to_decide(
                "it is answered, withdrawn, or its time is over",
            ));
        }
        None if args.show && args.wait.is_none() => {
            output::print_result(common.json, &json!({ "open": false }), || {
                "no decision is open".to_owned()
            });
            return Ok(());
        }
        None => {
            if !common.json {
                eprintln!("no decision is open; waiting for one (Ctrl-C ends it)");
            }
            tokio::select! {
            next = tokio::time::timeout(wait, next_moment(&context, &mut frames)) => {
                next.map_err(|_| describe_timeout(wait))??
            }
            () = stop.wait_requested() => return Ok(()),
            }
        }
    };
    let FramePayload::AgentBindingMoment(moment) = &moment_frame.payload else {
        return Ok(());
    };
    print_moment(common, &moment_frame, moment);
    if args.show {
        return Ok(());
    }
    let text = match answer_from_args(&args, &moment.question)? {
        Some(text) => text,
        None => tokio::select! {
            text = prompt_answer(&moment.question) => text?,
            answered_elsewhere = wait_decided(&context, &mut frames, moment_frame.frame_id) => {
                answered_elsewhere?;
                return Err(Fail::new(ExitKind::Refused, "ALREADY_DECIDED", "another session has answered it, or its time is over"));
            }
            () = stop.wait_requested() => return Ok(()),
        },
    };
    let payload = AgentResponse {
        // A binding moment has no id of its own, so the answer names its frame id.
        query_id: moment_frame.frame_id,
        response_text: text.clone(),
        responder_session_id: context.sender.session.to_string(),
        responded_to_frame_id: Some(moment_frame.frame_id),
        answer_attempt_idx: None,
    };
    // To all sessions of the asking handle, so that they do not ask again.
    let scope = args
        .target
        .explicit_scope(&context.client)
        .await?
        .unwrap_or_else(|| FrameScope::Handle(moment_frame.sender_handle.clone()));
    let sent = context.send_frame(&scope, payload).await?;
    context.print_sent_as(&sent, json!({ "response_text": text }), || {
        let id = paint_text(FAINT_STYLE, &moment_frame.frame_id.to_string());
        format!("answered: {}  {id}", escape_controls(&text))
    });
    Ok(())
}

fn nothing_to_decide(message: &str) -> Fail {
    Fail::new(ExitKind::Refused, "NOTHING_TO_DECIDE", message)
}

fn describe_timeout(wait: Duration) -> Fail {
    let waited = duration::format_duration(wait);
    let message = format!("no decision was asked for within {waited}");
    Fail::new(ExitKind::TimedOut, "TIMED_OUT", message)
}

/// The decision with this id, or the oldest open one.
async fn find_moment(context: &FrameContext<'_>, id: Option<Uuid>) -> Result<Option<Frame>, Fail> {
    let items = context.fetch_open_items().await?;
    let is_wanted = |open_item: &ParsedOpenItem| {
        open_item.kind == OpenItemKind::Decision
            && id.is_none_or(|id| open_item.frame.frame_id == id)
    };
    let found = items.into_iter().find(is_wanted);
    Ok(found.map(|open_item| open_item.frame))
}

/// The next decision to arrive.
async fn next_moment(context: &FrameContext<'_>, frames: &mut FrameStream) -> Result<Frame, Fail> {
    loop {
        wait_kind(frames, FrameKind::AgentBindingMoment).await?;
        if let Some(found) = find_moment(context, None).await? {
            return Ok(found);
        }
    }
}

/// Waits until the decision is open no more.
async fn wait_decided(
    context: &FrameContext<'_>,
    frames: &mut FrameStream,
    id: Uuid,
) -> Result<(), Fail> {
    while find_moment(context, Some(id)).await?.is_some() {
        wait_kind(frames, FrameKind::AgentResponse).await?;
    }
    Ok(())
}

/// Waits for a frame of this kind, or for a gap, which may hide one: either way the callers read what is open.
async fn wait_kind(frames: &mut FrameStream, kind: FrameKind) -> Result<(), Fail> {
    loop {
        match frames.next().await? {
            FrameStreamEvent::Frame(frame, _) if frame.kind() == kind => return Ok(()),
            FrameStreamEvent::Gap => return Ok(()),
            FrameStreamEvent::Frame(..)
            | FrameStreamEvent::Opened(_)
            | FrameStreamEvent::OpenItems(_) => {}
        }
    }
}

/// The answer in the arguments, if there is one.
fn answer_from_args(args: &Args, question: &DecisionQuestion) -> Result<Option<String>, Fail> {
    if let Some(number) = args.choose {
        return format_choice(question, number)
            .map(Some)
            .ok_or_else(|| Fail::usage_error(format_range(question)));
    }
    if let Some(text) = &args.text {
        return match question.allows_free_text() {
            true => Ok(Some(text.clone())),
            false => Err(Fail::usage_error(
                "this question takes one of its options or a dialogue, no free text",
            )),
        };
    }
    if let Some(text) = &args.dialogue {
        return match question.allows_dialogue() {
            true => Ok(Some(format_dialogue(text))),
            false => Err(Fail::usage_error(
                "this question takes one of its options or free text, no dialogue",
            )),
        };
    }
    Ok(None)
}

fn format_range(question: &DecisionQuestion) -> String {
    format!("choose 1 to {}", question.options.len())
}

/// The text of an option, such as `2: Roll back`.
fn format_choice(question: &DecisionQuestion, number: usize) -> Option<String> {
    let option = question.options.get(number.checked_sub(1)?)?;
    Some(format!("{number}: {}", option.label))
}

fn format_dialogue(text: &str) -> String {
    format!("dialogue: {text}")
}

/// Prompts at the terminal until the answer is valid for the question.
async fn prompt_answer(question: &DecisionQuestion) -> Result<String, Fail> {
    let mut lines: Lines<BufReader<Stdin>> = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let free_text_hint = if question.allows_free_text() {
            ", or your own words"
        } else {
            ""
        };
        let dialogue_hint = if question.allows_dialogue() {
            ", or ? and what you want to know first"
        } else {
            ""
        };
        crate::output::print_aside(
            false,
            &format!("{}{free_text_hint}{dialogue_hint}:", format_range(question)),
        );
        let line = lines
            .next_line()
            .await
            .map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
        let line = line.ok_or_else(|| {
            Fail::usage_error("no answer was given; pass --choose, --text or --dialogue")
        })?;
        let line = line.trim();
        if let Ok(number) = line.parse() {
            if let Some(text) = format_choice(question, number) {
                return Ok(text);
            }
        } else if let Some(counter_question) = line.strip_prefix('?') {
            if question.allows_dialogue() && !counter_question.trim().is_empty() {
                return Ok(format_dialogue(counter_question.trim()));
            }
        } else if question.allows_free_text() && !line.is_empty() {
            return Ok(line.to_owned());
        }
    }
}

fn print_moment(common: &CommonArgs, frame: &Frame, moment: &AgentBindingMoment) {
    if common.json {
        if let Ok(raw) = serde_json::from_str::<&RawValue>(frame.submitted_json()) {
            output::print_json(&json!({ "frame": raw }).to_string());
        }
        return;
    }
    let mut lines = vec![format!(
        "{} {}",
        format::format_sender(frame),
        paint_text(FAINT_STYLE, &frame.frame_id.to_string())
    )];
    lines.push(escape_controls(&moment.synopsis));
    lines.extend(
        moment
            .findings
            .iter()
            .map(|finding| format!("  · {}", escape_controls(finding))),
    );
    lines.extend(
        moment
            .recommendations
            .iter()
            .map(|advice| format!("  → {}", escape_controls(advice))),
    );
    lines.push(escape_controls(&moment.offer));
    lines.push(paint_text(
        STRONG_STYLE,
        &escape_controls(&moment.question.stem),
    ));
    for (index, option) in moment.question.options.iter().enumerate() {
        let recommended = moment.question.recommended_idx == index as u64;
        let mark = if recommended {
            paint_text(GOOD_STYLE, " (recommended)")
        } else {
            String::new()
        };
        let label = paint_text(STRONG_STYLE, &escape_controls(&option.label));
        lines.push(format!(
            "  {}. {label}{mark}: {}",
            index + 1,
            escape_controls(&option.reasoning)
        ));
    }
    lines.iter().for_each(|line| output::print_line(line));
}
