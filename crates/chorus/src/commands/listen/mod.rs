//! `chorus listen`: receives messages, files them, prints them and replies (SKL-13…18, SKL-24, SKL-35).

mod channel;
mod direct;
mod handler_command;
mod job_event;
mod print;

pub(super) use print::ReceivedMessage;

use super::history::peer_side;
use super::sent_messages::file_sent_messages;
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail};
use chorus_client::direct::parse_envelope;
use chorus_client::files::{HistoryLine, history::MessageDirection, inbox_state::StateLock};
use chorus_client::inbox_store::{FilingOutcome, InboxStore};
use chorus_client::limits;
use chorus_client::{envelope::trace_time, event_stream::StreamEvent};
use chorus_wire::message::{MessageEvent, ReceiptEvent, ReceiverReply, ShownEvent};
use chorus_wire::{cursor::Cursor, time::UnixMicros};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start after this cursor, and repeat older events; 0 is the beginning
    #[arg(long, value_name = "CURSOR", conflicts_with = "direct", value_parser = parse_cursor)]
    since: Option<Cursor>,
    /// Run this with sh for every message and every channel delivery, with the event on standard input; a failure is reported to the sender
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// Max seconds that the command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    exec_timeout: u64,
    /// Do not send replies
    #[arg(long)]
    no_reply: bool,
    /// Receive on this address, without a hub
    #[arg(long, value_name = "ADDR")]
    direct: Option<SocketAddr>,
    /// The URL by which senders reach --direct through a proxy; its host and origin are accepted too
    #[arg(long, value_name = "URL", requires = "direct")]
    public_url: Option<url::Url>,
    /// Stop after this many messages, receipts and channel deliveries; with --messages, receipts do not count
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after the first message, receipt or channel delivery; with --messages, a receipt does not count
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// For --once and --count: receipts are printed, but only messages and channel deliveries count
    #[arg(long, conflicts_with = "direct")]
    messages: bool,
}

fn parse_cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    if let Some(address) = args.direct {
        return direct::listen_direct(common, &args, address, stop).await;
    }
    let command = CommandClient::open(common)?;
    let _lock = StateLock::acquire(&command.files)?;
    let store = InboxStore::for_agent(command.files.clone(), &command.credentials)?;
    let remaining = args.message_limit();
    InboxListener {
        common,
        args: &args,
        command,
        store,
        remaining,
        hub_replays: true,
        unsent_replies: VecDeque::new(),
        waiting_mail: None,
    }
    .run_loop(stop)
    .await
}

impl Args {
    fn message_limit(&self) -> u64 {
        if self.once {
            1
        } else {
            self.count.unwrap_or(u64::MAX)
        }
    }
}

struct InboxListener<'a> {
    common: &'a CommonArgs,
    args: &'a Args,
    command: CommandClient,
    store: InboxStore,
    /// How many more events to print.
    remaining: u64,
    /// Whether the hub's stream replays: its first event then has a cursor.
    hub_replays: bool,
    /// Replies that could not be sent because the hub was unreachable.
    unsent_replies: VecDeque<(String, ReceiverReply)>,
    /// The mail that waited when an identity of which nothing was known began here.
    waiting_mail: Option<WaitingMail>,
}

/// The messages without a receipt at the hub, up to the log's sequence `last_seq`.
struct WaitingMail {
    ids: BTreeSet<u64>,
    last_seq: u64,
}

impl InboxListener<'_> {
    async fn run_loop(mut self, mut stop: StopSignal) -> Result<(), Fail> {
        self.check_certificate().await?;
        self.answer_unanswered().await?;
        let since = self.args.since.or(self.store.cursor());
        let mut stream = self.command.client.open_inbox(since).await;
        while self.remaining > 0 {
            let event = tokio::select! {
                event = stream.next() => event?,
                () = stop.wait_requested() => break,
            };
            self.handle_event(event).await?;
        }
        Ok(())
    }

    /// The stream waits for a hub that is away. One whose certificate is not accepted is there, and a person has to act.
    async fn check_certificate(&self) -> Result<(), Fail> {
        let client = &self.command.client;
        match client.fetch_paths().await.map_err(Fail::from) {
            Err(fail) if fail.is_certificate_refused(client.base_url()) => Err(fail),
            Err(_) | Ok(_) => Ok(()),
        }
    }

    /// Sends replies that were not sent before a crash (SKL-16). With a command the reply is an error, because it is not
    /// known whether the command finished.
    async fn answer_unanswered(&mut self) -> Result<(), Fail> {
        for trace_id in self.store.unanswered_traces().to_vec() {
            let reply = match self.args.exec {
                None => ReceiverReply::ok(),
                Some(_) => ReceiverReply::error(
                    handler_command::HANDLER_FAILED,
                    "the receiver stopped while it handled the message",
                ),
            };
            self.send_reply(trace_id, reply).await?;
        }
        Ok(())
    }

    /// The time of the newest received line: from there an identity without a cursor catches up.
    fn last_received_time(&mut self) -> Result<Option<String>, Fail> {
        let lines = self.store.history().all_lines()?;
        let is_received = |line: &HistoryLine| {
            line.dir == MessageDirection::Received && UnixMicros::parse(&line.ts).is_some()
        };
        // Mail that came before an answer to `send --wait` may still be unread.
        let is_listened = |line: &HistoryLine| !self.store.is_printed_answer(&line.ts);
        let mut received = lines.into_iter().filter(is_received);
        Ok(received.rfind(is_listened).map(|line| line.ts))
    }

    /// Handles the messages of the hub's history from this time on (SKL-18, SKL-35), or all of them.
    async fn catch_up(&mut self, from: Option<String>) -> Result<(), Fail> {
        let mut history = self.command.client.read_history(from);
        while let Some(rows) = history.next_page().await? {
            for row in rows {
                let (dir, peer) = peer_side(&self.command.credentials.agent_id, &row);
                let id = Cursor::from_log_seq(row.id);
                let peer = peer.to_owned();
                match dir {
                    MessageDirection::Received if self.remaining == 0 => return Ok(()),
                    MessageDirection::Received if self.is_acknowledged(row.id) => {}
                    MessageDirection::Received
                        if self.args.since.is_some_and(|since| id <= since) => {}
                    MessageDirection::Received => {
                        let trace_id = row.trace_id;
                        let sender_id = row.sender_id;
                        let timestamp = row.timestamp;
                        let message = MessageEvent {
                            trace_id,
                            sender_id,
                            envelope: row.envelope,
                            timestamp,
                        };
                        self.handle_message(Some(id), message).await?;
                    }
                    // Filed when it was sent; such a hub gives it another time.
                    MessageDirection::Sent if !self.hub_replays => {}
                    MessageDirection::Sent => {
                        let ts =
                            trace_time(&row.trace_id).unwrap_or_else(|| row.timestamp.to_string());
                        self.store.history().append_once(&HistoryLine {
                            ts,
                            dir,
                            peer,
                            envelope: row.envelope,
                        })?;
                        self.store.save_progress(Some(id), None)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn handle_event(&mut self, event: StreamEvent) -> Result<(), Fail> {
        let not_understood =
            |e| tracing::warn!("an event of kind {} was not understood: {e}", event.name);
        match event.name.as_str() {
            "connected" => self.handle_connected(&event).await?,
            "message" => match serde_json::from_str::<MessageEvent>(&event.data) {
                Ok(message) => self.handle_message(event.cursor, message).await?,
                Err(e) => not_understood(e),
            },
            "receipt" => match serde_json::from_str::<ReceiptEvent>(&event.data) {
                Ok(receipt) => {
                    print::print_receipt(self.common, event.cursor, &receipt);
                    self.remaining -= u64::from(!self.args.messages);
                    self.save_progress(event.cursor, None)?;
                    if self.hub_replays {
                        file_sent_messages(&self.command, &mut self.store).await?;
                    }
                }
                Err(e) => not_understood(e),
            },
            "shown" => match serde_json::from_str::<ShownEvent>(&event.data) {
                Ok(shown) => {
                    print::print_shown(self.common, event.cursor, &shown);
                    self.save_progress(event.cursor, None)?;
                }
                Err(e) => not_understood(e),
            },
            "gap" => {
                print::print_gap(self.common, &event);
                self.save_progress(event.cursor, None)?;
            }
            "channel" => self.handle_delivery(&event).await?,
            "channel_invite" => {
                channel::print_invite(self.common, &event);
                self.save_progress(event.cursor, None)?;
            }
            _ => {
                print::print_event(self.common, &event);
                self.save_progress(event.cursor, None)?;
            }
        }
        Ok(())
    }

    /// The stream was opened. Messages that it does not replay are fetched from the history.
    async fn handle_connected(&mut self, event: &StreamEvent) -> Result<(), Fail> {
        print::print_connected(self.common, &self.command);
        self.hub_replays = event.cursor.is_some();
        if self.hub_replays {
            file_sent_messages(&self.command, &mut self.store).await?;
        }
        for (trace_id, reply) in std::mem::take(&mut self.unsent_replies) {
            self.send_reply(trace_id, reply).await?;
        }
        let is_new_here = self.args.since.is_none() && self.store.cursor().is_none();
        if self.hub_replays && !is_new_here {
            return Ok(());
        }
        // The stream is open already, so that no message is missed between the history and the stream.
        let from = match self.args.since {
            Some(_) => None,
            None => self.last_received_time()?,
        };
        // An identity of which nothing is known begins with the mail that waits for it at the hub.
        let from = match from {
            None if is_new_here => self.find_waiting_mail(event.cursor).await,
            from => from,
        };
        if from.is_some() || !is_new_here {
            self.catch_up(from).await?;
            // The next run goes on where this one ended, not at the end of the log.
            if self.remaining == 0 {
                return Ok(());
            }
        }
        self.save_progress(event.cursor, None)
    }

    /// Notes which messages have no receipt, and returns where to read the hub's history from to begin with the oldest of them;
    /// `None` when there is none, or when the hub does not say. `opened_at` is the end of the log when the stream was opened.
    async fn find_waiting_mail(&mut self, opened_at: Option<Cursor>) -> Option<String> {
        match self.command.client.list_unanswered().await {
            Ok(unanswered) => {
                let oldest = *unanswered.ids.first()?;
                let newest = unanswered.ids.last().copied();
                let last_seq = match unanswered.more {
                    true => newest,
                    false => opened_at.map(|cursor| cursor.seq).max(newest),
                };
                self.waiting_mail = Some(WaitingMail {
                    ids: unanswered.ids,
                    last_seq: last_seq.unwrap_or_default(),
                });
                Some(Cursor::from_log_seq(oldest.saturating_sub(1)).to_string())
            }
            Err(error) => {
                tracing::warn!(
                    "the hub does not say which messages wait for you; chorus history --remote shows all: {error}"
                );
                None
            }
        }
    }

    /// Whether a received message had its receipt already when this identity began here.
    fn is_acknowledged(&self, id: u64) -> bool {
        self.waiting_mail
            .as_ref()
            .is_some_and(|mail| id <= mail.last_seq && !mail.ids.contains(&id))
    }

    async fn handle_message(
        &mut self,
        cursor: Option<Cursor>,
        message: MessageEvent,
    ) -> Result<(), Fail> {
        let trace_id = message.trace_id.to_string();
        let received = print::ReceivedMessage::from_event(cursor, &message);
        let envelope = match parse_envelope(message.envelope.get()) {
            Ok(envelope) => envelope,
            Err(fault) => {
                let detail = fault.detail.as_deref().unwrap_or("it broke the protocol");
                tracing::warn!("{trace_id} is refused: {detail}");
                self.save_progress(cursor, Some(&trace_id))?;
                return self.send_reply(trace_id, fault).await;
            }
        };
        let peer = envelope.sender_id().as_str();
        // Without replay, a message that came by stream has no cursor: only its line says that it was handled.
        let unhandled = cursor.filter(|_| self.args.exec.is_some() && self.hub_replays);
        let filing = self.store.file_message(
            &message.timestamp.to_string(),
            peer,
            message.envelope.clone(),
            unhandled,
        )?;
        if filing == FilingOutcome::NewMessage || self.args.since.is_some() {
            received.print_message(self.common, &envelope);
            self.remaining -= 1;
        }
        self.save_progress(cursor, Some(&trace_id))?;
        let reply = match filing {
            FilingOutcome::Repeated(reply) => reply,
            FilingOutcome::NewMessage => {
                let reply = handler_command::run_handler(self.args, &received, &envelope).await;
                self.store.cache_reply(peer, &message.envelope, &reply);
                reply
            }
        };
        self.send_reply(trace_id, reply).await
    }

    /// Sends a reply. While the hub is unreachable the reply is kept, and sent when the stream is open again.
    async fn send_reply(&mut self, trace_id: String, reply: ReceiverReply) -> Result<(), Fail> {
        if !self.args.no_reply {
            match self.command.client.send_response(&trace_id, &reply).await {
                Ok(()) => {}
                // the first response counts, and there was an earlier one.
                Err(e)
                    if e.error_response()
                        .is_some_and(|refusal| refusal.status == 409) => {}
                Err(e) if e.is_transient() => {
                    tracing::warn!(
                        "the receipt of {trace_id} could not be sent and is sent when the hub can be reached again: {e}"
                    );
                    self.unsent_replies.push_back((trace_id, reply));
                    let excess = self
                        .unsent_replies
                        .len()
                        .saturating_sub(limits::MAX_UNANSWERED_REPLIES);
                    self.unsent_replies.drain(..excess);
                    return Ok(());
                }
                // Only hubs that replay take receipts.
                Err(e) if !self.hub_replays => {
                    tracing::debug!("the receipt of {trace_id} could not be sent: {e}");
                }
                Err(e) => tracing::warn!(
                    "the hub did not take the receipt of {trace_id}, and it is not sent again: {e}"
                ),
            }
        }
        Ok(self.store.mark_answered(&trace_id)?)
    }

    /// Saves the cursor. With `--since` old messages are repeated, but the saved cursor never moves back.
    fn save_progress(
        &mut self,
        cursor: Option<Cursor>,
        unanswered: Option<&str>,
    ) -> Result<(), Fail> {
        let new_cursor =
            cursor.filter(|cursor| self.store.cursor().is_none_or(|saved| saved < *cursor));
        Ok(self
            .store
            .save_progress(new_cursor, unanswered.filter(|_| !self.args.no_reply))?)
    }
}
