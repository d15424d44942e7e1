//! `chorus send --wait`: waits until a sent message was shown or answered.

use super::duration::format_duration;
use super::hook::ReportProgress;
use super::listen::ReceivedMessage;
use super::wait_line::WaitLine;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client::CommandClient, output};
use chorus_client::HubClient;
use chorus_client::envelope::AcceptedMessage;
use chorus_client::files::inbox_state::StateLock;
use chorus_client::inbox_store::InboxStore;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageStatus, ReceiverReply};
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
        let (goal, awaited) = match fact {
            WaitedFact::Shown => ("shown", "until it is shown"),
            WaitedFact::Answer => ("answered", "until it is answered"),
        };
        let client = &command.client;
        let line = WaitLine::begin(common.json, awaited, timeout);
        let hearing = self.hear_fact(client, fact, timeout);
        let heard = WaitLine::draw_message(line, client, &trace_id, hearing).await?;
        if let Some(heard) = heard {
            heard.take_fact(common, command).await;
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
    async fn take_fact(self, common: &CommonArgs, command: &CommandClient) {
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
                // Filed first, as a listener does: what was printed is never printed again.
                if let Err(error) = file_answer(command, &row) {
                    tracing::warn!("the answer may be printed again by chorus listen: {error}");
                }
                if let Ok(envelope) = Envelope::parse(row.envelope.get()) {
                    ReceivedMessage::from_row(&row).print_message(common, &envelope);
                }
                acknowledge_answer(command, &row.trace_id.to_string()).await;
            }
        }
    }
}

/// Files the answer, so that no listener prints it again.
fn file_answer(command: &CommandClient, row: &HistoryRow) -> chorus_client::Result<()> {
    // A process that listens with these files receives the answer too, and files it.
    if StateLock::is_held(&command.files) {
        return Ok(());
    }
    let _lock = StateLock::acquire(&command.files)?;
    let mut store = InboxStore::for_agent(command.files.clone(), &command.credentials)?;
    let at = row.timestamp.to_string();
    store.file_printed_answer(&at, &row.sender_id, row.envelope.clone())
}

/// Sends the receipt (SKL-16), and notes for the hooks of a host that the answer was read. The command has succeeded by then,
/// so a failure is only a warning.
async fn acknowledge_answer(command: &CommandClient, trace_id: &str) {
    let mut progress = ReportProgress::open_locked(&command.files, &command.credentials);
    if let Err(error) = progress.save_acknowledged(vec![trace_id.to_owned()]) {
        tracing::warn!("hooks will report the answer again: {error}");
    }
    drop(progress);
    let reply = ReceiverReply::ok();
    match command.client.send_response(trace_id, &reply).await {
        Ok(()) => {}
        // the first response counts, and a listener has sent one.
        Err(e)
            if e.error_response()
                .is_some_and(|refusal| refusal.status == 409) => {}
        Err(e) => tracing::warn!("{trace_id} could not be acknowledged: {e}"),
    }
}
