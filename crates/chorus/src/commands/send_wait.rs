//! `chorus send --wait`: waits until a sent message was shown or answered.

use super::duration::format_duration;
use super::listen::ReceivedMessage;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client::CommandClient, output};
use chorus_client::envelope::AcceptedMessage;
use chorus_wire::envelope::Envelope;
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;

/// What `--wait` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WaitedFact {
    /// The text was part of a model's turn or on a person's screen
    Shown,
    /// A message came back, in the same conversation if the sent one is in one
    Answer,
}

/// A message that was accepted by the hub.
pub struct SentMessage<'a> {
    pub peer: &'a str,
    pub conversation_id: Option<&'a str>,
    pub accepted: &'a AcceptedMessage,
}

impl SentMessage<'_> {
    pub async fn wait_for(
        self,
        common: &CommonArgs,
        command: &CommandClient,
        fact: WaitedFact,
        timeout: Duration,
    ) -> Result<(), Fail> {
        let trace_id = self.accepted.sent.trace_id.to_string();
        let goal = match fact {
            WaitedFact::Shown => "shown",
            WaitedFact::Answer => "answered",
        };
        if !common.json && std::io::stderr().is_terminal() {
            let time = format_duration(timeout);
            eprintln!(
                "waiting up to {time} until it is {goal}; Ctrl-C stops waiting, the message stays sent"
            );
        }
        let client = &command.client;
        let has_happened = match fact {
            WaitedFact::Shown => {
                let status = client.wait_until_shown(&trace_id, timeout).await?;
                if let Some(status) = &status {
                    let output = json!({ "event": "shown", "trace_id": status.trace_id,
                        "receiver_id": status.receiver_id, "timestamp": status.shown_at });
                    output::print_result(common.json, &output, || {
                        let receiver = output::escape_controls(&status.receiver_id);
                        format!(
                            "shown to {}",
                            output::paint_text(output::STRONG_STYLE, &receiver)
                        )
                    });
                }
                status.is_some()
            }
            WaitedFact::Answer => {
                let answer = client
                    .wait_for_answer(self.accepted, self.peer, self.conversation_id, timeout)
                    .await?;
                if let Some(row) = &answer
                    && let Ok(envelope) = Envelope::parse(row.envelope.get())
                {
                    ReceivedMessage::from_row(row).print_message(common, &envelope);
                }
                answer.is_some()
            }
        };
        if has_happened {
            return Ok(());
        }
        let time = format_duration(timeout);
        Err(Fail::new(
            ExitKind::TimedOut,
            "TIMED_OUT",
            format!(
                "not {goal} within {time}; the message stays sent, see: chorus status {trace_id}"
            ),
        ))
    }
}
