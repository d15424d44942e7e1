//! `chorus listen`: hear what arrives, file it, show it, answer it (SKL-13…18, SKL-24, SKL-35).

mod channel;
mod direct;
mod exec;
mod show;

use super::history::side;
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, session::Session};
use chorus_client::desk::{Desk, Verdict};
use chorus_client::direct as protocol;
use chorus_client::files::{Line, history::Dir, state::Turn};
use chorus_client::limits;
use chorus_client::{envelope::sent_at, stream::Event};
use chorus_wire::message::{MessageEvent, Receipt, ReceiverReply};
use chorus_wire::{cursor::Cursor, time::Micros};
use std::collections::VecDeque;
use std::net::SocketAddr;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Begin after this cursor, also with what was heard before; 0 is the beginning
    #[arg(long, value_name = "CURSOR", conflicts_with = "direct", value_parser = cursor)]
    since: Option<Cursor>,
    /// Run this with sh for every message and every delivery from a channel, the event on its standard input; its failure is told to the sender
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// How long a command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    exec_timeout: u64,
    /// Do not answer the senders
    #[arg(long)]
    no_reply: bool,
    /// Receive on this address, without a hub
    #[arg(long, value_name = "ADDR")]
    direct: Option<SocketAddr>,
    /// End after this many messages, receipts and deliveries
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after one
    #[arg(long, conflicts_with = "count")]
    once: bool,
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let stop = Stop::watch()?;
    if let Some(address) = args.direct {
        return direct::run(common, &args, address, stop).await;
    }
    let session = Session::open(common)?;
    let _turn = Turn::take(&session.place)?;
    let desk = Desk::of(session.place.clone(), &session.who)?;
    let left = args.count();
    Listener {
        common,
        args: &args,
        session,
        desk,
        left,
        opened: None,
        debts: VecDeque::new(),
    }
    .run(stop)
    .await
}

impl Args {
    fn count(&self) -> u64 {
        if self.once {
            1
        } else {
            self.count.unwrap_or(u64::MAX)
        }
    }
}

struct Listener<'a> {
    common: &'a Common,
    args: &'a Args,
    session: Session,
    desk: Desk,
    /// How many more to show.
    left: u64,
    /// When the stream was opened, while there is no cursor yet: without one, that instant is where a gap would begin.
    opened: Option<String>,
    /// Replies that could not be given while the hub was away.
    debts: VecDeque<(String, ReceiverReply)>,
}

impl Listener<'_> {
    async fn run(mut self, mut stop: Stop) -> Result<(), Fail> {
        self.settle().await?;
        if self.args.since.is_none() && self.desk.cursor().is_none() {
            let last = self.last_heard()?;
            self.catch_up(last).await?;
        }
        let since = self.args.since.or(self.desk.cursor());
        let mut stream = self.session.client.inbox(since).await;
        while self.left > 0 {
            let event = tokio::select! {
                event = stream.next() => event?,
                () = stop.asked() => break,
            };
            self.hear(event).await?;
        }
        Ok(())
    }

    /// Replies that a crash left owing (SKL-16). Whether a command finished its work is not known, so it is not called a
    /// success.
    async fn settle(&mut self) -> Result<(), Fail> {
        for trace_id in self.desk.unanswered().to_vec() {
            let reply = match self.args.exec {
                None => ReceiverReply::ok(),
                Some(_) => ReceiverReply::error(
                    exec::FAILED,
                    "the receiver stopped while it handled the message",
                ),
            };
            self.answer(trace_id, reply).await?;
        }
        Ok(())
    }

    /// The instant of the newest received line: where an identity without a cursor stopped hearing.
    fn last_heard(&mut self) -> Result<Option<String>, Fail> {
        let lines = self.desk.history().all_lines()?;
        let heard = |line: &Line| line.dir == Dir::Received && Micros::parse(&line.ts).is_some();
        Ok(lines.into_iter().rfind(heard).map(|line| line.ts))
    }

    /// Everything at and after an instant, from the hub's history (SKL-18, SKL-35). Without one, only what is new is heard.
    async fn catch_up(&mut self, from: Option<String>) -> Result<(), Fail> {
        let mut since = from;
        while let Some(from) = since.take() {
            for row in self.session.client.history(Some(&from)).await? {
                let (dir, peer) = side(&self.session.who.agent_id, &row);
                let (id, peer) = (Cursor::log(row.id), peer.to_owned());
                since = Some(id.to_string());
                match dir {
                    Dir::Received if self.left == 0 => return Ok(()),
                    Dir::Received => {
                        let (trace_id, sender_id, timestamp) =
                            (row.trace_id, row.sender_id, row.timestamp);
                        let message = MessageEvent {
                            trace_id,
                            sender_id,
                            envelope: row.envelope,
                            timestamp,
                        };
                        self.message(Some(id), message).await?;
                    }
                    Dir::Sent => {
                        let ts =
                            sent_at(&row.trace_id).unwrap_or_else(|| row.timestamp.to_string());
                        self.desk.history().append_once(&Line {
                            ts,
                            dir,
                            peer,
                            envelope: row.envelope,
                        })?;
                        self.desk.reached(Some(id), None)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn hear(&mut self, event: Event) -> Result<(), Fail> {
        let not_understood =
            |e| tracing::warn!("an event of kind {} was not understood: {e}", event.name);
        match event.name.as_str() {
            "connected" => self.connected(&event).await?,
            "message" => match serde_json::from_str::<MessageEvent>(&event.data) {
                Ok(message) => self.message(event.cursor, message).await?,
                Err(e) => not_understood(e),
            },
            "receipt" => match serde_json::from_str::<Receipt>(&event.data) {
                Ok(receipt) => {
                    show::receipt(self.common, event.cursor, &receipt);
                    self.left -= 1;
                    self.reached(event.cursor, None)?;
                }
                Err(e) => not_understood(e),
            },
            "channel" => self.delivery(&event).await?,
            _ => {
                show::other(self.common, &event);
                self.reached(event.cursor, None)?;
            }
        }
        Ok(())
    }

    /// The stream was opened. If that happens again before there is a cursor, what came between is fetched.
    async fn connected(&mut self, event: &Event) -> Result<(), Fail> {
        show::connected(self.common, &self.session);
        for (trace_id, reply) in std::mem::take(&mut self.debts) {
            self.answer(trace_id, reply).await?;
        }
        if self.args.since.is_none() && self.desk.cursor().is_none() {
            let before = self.opened.take();
            self.catch_up(before).await?;
            let said: serde_json::Value = serde_json::from_str(&event.data).unwrap_or_default();
            self.opened = said["timestamp"].as_str().map(str::to_owned);
        }
        Ok(())
    }

    async fn message(&mut self, cursor: Option<Cursor>, message: MessageEvent) -> Result<(), Fail> {
        let trace_id = message.trace_id.to_string();
        let told = show::Message::of(cursor, &message);
        let envelope = match protocol::open(message.envelope.get()) {
            Ok(envelope) => envelope,
            Err(fault) => {
                let detail = fault.detail.as_deref().unwrap_or("it broke the protocol");
                tracing::warn!("{trace_id} is refused: {detail}");
                self.reached(cursor, Some(&trace_id))?;
                return self.answer(trace_id, fault).await;
            }
        };
        let peer = envelope.sender_id().as_str();
        let unhandled = cursor.filter(|_| self.args.exec.is_some());
        let verdict = self.desk.file(
            &message.timestamp.to_string(),
            peer,
            message.envelope.clone(),
            unhandled,
        )?;
        if verdict == Verdict::Fresh || self.args.since.is_some() {
            told.show(self.common, &envelope);
            self.left -= 1;
        }
        self.reached(cursor, Some(&trace_id))?;
        let reply = match verdict {
            Verdict::Repeat(reply) => reply,
            Verdict::Fresh => {
                let reply = exec::handle(self.args, &told, &envelope).await;
                self.desk.answered(peer, &message.envelope, &reply);
                reply
            }
        };
        self.answer(trace_id, reply).await
    }

    /// The reply goes out. While the hub is away it stays owed, and goes out when the stream is back.
    async fn answer(&mut self, trace_id: String, reply: ReceiverReply) -> Result<(), Fail> {
        if !self.args.no_reply {
            match self.session.client.respond(&trace_id, &reply).await {
                Ok(()) => {}
                // the first response stands, and here one was given before.
                Err(e) if e.refusal().is_some_and(|refusal| refusal.status == 409) => {}
                Err(e) if e.passes() => {
                    tracing::warn!("{trace_id} could not be answered yet: {e}");
                    self.debts.push_back((trace_id, reply));
                    let over = self.debts.len().saturating_sub(limits::REPLIES_OWED);
                    self.debts.drain(..over);
                    return Ok(());
                }
                Err(e) => tracing::warn!("{trace_id} could not be answered: {e}"),
            }
        }
        Ok(self.desk.settled(&trace_id)?)
    }

    /// With `--since` old messages pass by again: the saved cursor never goes back for them.
    fn reached(&mut self, cursor: Option<Cursor>, owed: Option<&str>) -> Result<(), Fail> {
        let further =
            cursor.filter(|cursor| self.desk.cursor().is_none_or(|saved| saved < *cursor));
        Ok(self
            .desk
            .reached(further, owed.filter(|_| !self.args.no_reply))?)
    }
}
