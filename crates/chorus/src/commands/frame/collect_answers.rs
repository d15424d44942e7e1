//! Prints the answers to what a session has asked, and says when one may have come while the connection was away.

use super::format;
use super::frame_context::{FrameContext, SentFrame};
use crate::commands::duration;
use crate::commands::wait_line::WaitLine;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output, stop_signal::StopSignal};
use chorus_client::backoff::Backoff;
use chorus_client::frame::{FrameStream, FrameStreamEvent};
use chorus_wire::frame::{Frame, FramePayload, FrameScope};
use chorus_wire::identity::Handle;
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// How long an answer may still be on its way after the decision has ended: the hub ends it first, then sends the frame.
const LAST_ANSWER_DELAY: Duration = Duration::from_secs(3);

/// What a command waits for after it has asked.
pub struct AnswerWait {
    pub window: Duration,
    pub max_count: usize,
    /// The decision that it asked for, if the hub keeps it.
    pub decision: Option<KeptDecision>,
}

/// A decision that the hub keeps open under a handle until it ends.
pub struct KeptDecision {
    handle: Handle,
    frame_id: Uuid,
}

impl KeptDecision {
    /// `None` if the hub did not keep the frame.
    pub fn from_sent(scope: &FrameScope, sent: &SentFrame) -> Option<Self> {
        let is_decision = matches!(sent.frame.payload, FramePayload::AgentBindingMoment(_));
        let is_kept = sent.submitted.kept == Some(true);
        (is_decision && is_kept).then(|| Self {
            handle: scope.addressed_handle().clone(),
            frame_id: sent.frame.frame_id,
        })
    }
}

/// Whether an answer may have come while the connection was away. A hub keeps frames for minutes and in memory, so a gap in
/// the stream may hide one; of a decision it keeps whether it is open, and not how it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissedAnswer {
    /// No frame was missed, or the decision is still open.
    None,
    Possible,
    /// The decision has ended meanwhile.
    DecisionEnded,
}

/// Prints frames that match `is_ours` until the window closes, enough have come, or the user interrupts. Without an answer in
/// the window the command fails, and one that may have come unheard has an exit code of its own: a script that asks again
/// would have the same thing decided twice.
pub async fn collect_answers(
    context: &FrameContext<'_>,
    frames: &mut FrameStream,
    is_ours: impl Fn(&Frame) -> bool,
    wait: &AnswerWait,
    mut stop: StopSignal,
) -> Result<usize, Fail> {
    let end = tokio::time::sleep(wait.window);
    tokio::pin!(end);
    let mut count = 0;
    let mut missed = MissedAnswer::None;
    let line = WaitLine::begin(context.common.json, "for an answer", wait.window);
    while count < wait.max_count {
        let event = tokio::select! {
            event = frames.next() => event?,
            () = &mut end => break,
            () = stop.wait_requested() => return Ok(count),
            never = WaitLine::repeat_time(line.as_ref()) => match never {},
        };
        match event {
            FrameStreamEvent::Frame(frame, _) if is_ours(&frame) => {
                if let Some(line) = &line {
                    line.clear();
                }
                print_answer(context.common, &frame);
                count += 1;
            }
            FrameStreamEvent::Gap => {
                missed = MissedAnswer::Possible;
                missed = tokio::select! {
                    missed = wait.check_after_gap(context) => missed,
                    () = &mut end => break,
                    () = stop.wait_requested() => return Ok(count),
                };
                if missed == MissedAnswer::DecisionEnded {
                    let last = (Instant::now() + LAST_ANSWER_DELAY).min(end.deadline());
                    end.as_mut().reset(last);
                }
            }
            FrameStreamEvent::Frame(..)
            | FrameStreamEvent::Opened(_)
            | FrameStreamEvent::OpenItems(_) => {}
        }
    }
    if missed == MissedAnswer::None && !frames.is_connected() {
        missed = MissedAnswer::Possible;
    }
    match count {
        0 => Err(describe_silence(wait.window, missed)),
        count => Ok(count),
    }
}

impl AnswerWait {
    /// After a gap: asks the hub whether the decision is still open, until it answers.
    async fn check_after_gap(&self, context: &FrameContext<'_>) -> MissedAnswer {
        let Some(decision) = &self.decision else {
            return MissedAnswer::Possible;
        };
        let backoff = Backoff::default();
        let mut failures = 0;
        loop {
            let is_ours = |id: Uuid| id == decision.frame_id;
            match context.client.list_open_items(&decision.handle).await {
                Ok(items) if items.iter().any(|item| is_ours(item.frame_id)) => {
                    return MissedAnswer::None;
                }
                Ok(_) => return MissedAnswer::DecisionEnded,
                Err(error) if error.is_transient() => failures += 1,
                // The right to read what is open there may have ended.
                Err(_) => return MissedAnswer::Possible,
            }
            tokio::time::sleep(backoff.delay_after(failures)).await;
        }
    }
}

/// The error of a command that got no answer.
fn describe_silence(window: Duration, missed: MissedAnswer) -> Fail {
    let waited = duration::format_duration(window);
    let missed_answer = |message: String| Fail::new(ExitKind::Missed, "ANSWER_MISSED", message);
    match missed {
        MissedAnswer::None => Fail::new(
            ExitKind::TimedOut,
            "TIMED_OUT",
            format!("no answer within {waited}"),
        ),
        MissedAnswer::Possible => missed_answer(format!(
            "no answer within {waited}, but the connection to the hub was lost meanwhile, and an answer may have come then"
        )),
        MissedAnswer::DecisionEnded => missed_answer(
            "the decision was answered, withdrawn or over while the connection to the hub was lost, and the hub does not keep \
             answers; a console that was open shows it under Sessions (chorus console), or ask who decided"
                .into(),
        ),
    }
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
