//! `chorus send --wait`: waits until a sent message was shown or answered.

use super::duration::format_duration;
use super::listen::ReceivedMessage;
use super::wait_line::WaitLine;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client::CommandClient, output};
use chorus_client::HubClient;
use chorus_client::envelope::AcceptedMessage;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageStatus};
use serde_json::json;
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
        let client = &command.client;
        let line = WaitLine::begin(common.json, goal, timeout);
        let drawing = async {
            match &line {
                Some(line) => line.draw(client, &trace_id).await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            heard = self.hear_fact(client, fact, timeout) => heard,
            () = drawing => return Ok(()),
        };
        drop(line);
        if let Some(heard) = heard? {
            heard.print_fact(common);
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

    async fn hear_fact(
        &self,
        client: &HubClient,
        fact: WaitedFact,
        timeout: Duration,
    ) -> Result<Option<HeardFact>, Fail> {
        let trace_id = self.accepted.sent.trace_id.to_string();
        Ok(match fact {
            WaitedFact::Shown => client
                .wait_until_shown(&trace_id, timeout)
                .await?
                .map(|status| HeardFact::Shown(Box::new(status))),
            WaitedFact::Answer => client
                .wait_for_answer(self.accepted, self.peer, self.conversation_id, timeout)
                .await?
                .map(HeardFact::Answer),
        })
    }
}

/// What was waited for.
enum HeardFact {
    Shown(Box<MessageStatus>),
    Answer(HistoryRow),
}

impl HeardFact {
    fn print_fact(&self, common: &CommonArgs) {
        match self {
            HeardFact::Shown(status) => {
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
            HeardFact::Answer(row) => {
                if let Ok(envelope) = Envelope::parse(row.envelope.get()) {
                    ReceivedMessage::from_row(row).print_message(common, &envelope);
                }
            }
        }
    }
}
