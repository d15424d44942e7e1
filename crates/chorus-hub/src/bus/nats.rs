//! NATS as hubs use it: one connection, names under one root, and questions that know at once when nobody is there to answer.

use async_nats::jetstream::{self, consumer::DeliverPolicy, consumer::pull, stream};
use async_nats::{Client, ConnectOptions, Event, RequestErrorKind, connection::State};
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::sync::watch;

/// How often the connection is tried; three that nobody answered end it.
const PING: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
/// The pauses between attempts to connect again.
const AGAIN: Duration = Duration::from_millis(200);
/// Said and not yet written: beyond it whoever speaks waits, and gives up in its time.
const UNWRITTEN: usize = 16_384;
/// Heard and not yet looked at; what comes beyond it is dropped, and found missing by the next look at the log.
const UNHEARD: usize = 65_536;

/// A connection that comes back by itself.
pub(super) struct Nats {
    client: Client,
    context: jetstream::Context,
    root: String,
    /// How often it has been made.
    made: watch::Receiver<u64>,
}

/// Something that was said to this hub.
pub(super) struct Heard {
    pub payload: Bytes,
    /// Where an answer goes, when one is asked for.
    reply: Option<async_nats::Subject>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Nobody listens there.
    Nobody,
    /// Not in time, or the bus is away.
    Late,
}

/// Where to listen.
pub(super) struct Ear(async_nats::Subscriber);

impl Ear {
    /// The next thing said; nothing when the connection is gone for good.
    pub async fn next(&mut self) -> Option<Heard> {
        let message = self.0.next().await?;
        Some(Heard { payload: message.payload, reply: message.reply })
    }
}

impl Nats {
    /// `url` may name several servers, separated by commas.
    pub async fn connect(url: &Secret, root: String) -> Result<Self, String> {
        let servers: Result<Vec<async_nats::ServerAddr>, _> = url.expose().split(',').map(str::parse).collect();
        let servers = servers.map_err(|_| "not a nats:// URL".to_owned())?;
        let (made, times) = watch::channel(0);
        let options = ConnectOptions::new()
            .name("chorus")
            .connection_timeout(CONNECT)
            .ping_interval(PING)
            .client_capacity(UNWRITTEN)
            .subscription_capacity(UNHEARD)
            .reconnect_delay_callback(|_| AGAIN)
            .event_callback(move |event| {
                if event == Event::Connected {
                    made.send_modify(|times| *times += 1);
                } else {
                    tracing::warn!(%event, "the bus");
                }
                std::future::ready(())
            });
        let connecting = tokio::time::timeout(CONNECT, options.connect(servers)).await;
        let client = connecting.map_err(|_| "no answer in time".to_owned())?.map_err(|e| e.to_string())?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(limits::BUS_WAIT);
        Ok(Self { client, context, root, made: times })
    }

    pub fn is_up(&self) -> bool {
        matches!(self.client.connection_state(), State::Connected)
    }

    /// Changes whenever the connection was made anew.
    pub fn made(&self) -> watch::Receiver<u64> {
        self.made.clone()
    }

    fn place(&self, to: &str) -> String {
        format!("{}.{to}", self.root)
    }

    /// Said to whoever listens; nobody knows who did.
    pub async fn say(&self, to: &str, what: Bytes) {
        if self.is_up() {
            let _ = tokio::time::timeout(limits::BUS_WAIT, self.client.publish(self.place(to), what)).await;
        }
    }

    pub async fn ask(&self, to: &str, what: Bytes, within: Duration) -> Result<Bytes, Silence> {
        if !self.is_up() {
            return Err(Silence::Late);
        }
        let request = async_nats::Request::new().payload(what).timeout(None);
        let asking = self.client.send_request(self.place(to), request);
        match tokio::time::timeout(within, asking).await {
            Ok(Ok(answer)) => Ok(answer.payload),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Err(Silence::Nobody),
            Ok(Err(_)) | Err(_) => Err(Silence::Late),
        }
    }

    pub async fn answer(&self, question: &Heard, what: Bytes) {
        if let Some(reply) = &question.reply {
            let _ = tokio::time::timeout(limits::BUS_WAIT, self.client.publish(reply.clone(), what)).await;
        }
    }

    /// From here on everything said to `name` is heard: the server knows when this returns.
    pub async fn listen(&self, name: &str) -> Result<Ear, String> {
        let ear = self.client.subscribe(self.place(name)).await.map_err(|e| e.to_string())?;
        self.client.flush().await.map_err(|e| e.to_string())?;
        Ok(Ear(ear))
    }

    /// Writes out what was said, before the process ends.
    pub async fn flush(&self) {
        if self.is_up() {
            let _ = tokio::time::timeout(limits::BUS_WAIT, self.client.flush()).await;
        }
    }

    fn tape(&self) -> String {
        format!("{}-frames", self.root.replace('.', "-"))
    }

    /// The memory that all hubs share of the last minutes, made if there is none. `epoch` names a new one.
    pub async fn tape_open(&self, epoch: u64) -> Result<Tape, String> {
        let config = stream::Config {
            name: self.tape(),
            description: Some(format!("{epoch:x}")),
            subjects: vec![self.place("frames")],
            storage: stream::StorageType::Memory,
            max_age: limits::RING_KEPT,
            max_bytes: limits::TAPE_BYTES,
            discard: stream::DiscardPolicy::Old,
            ..stream::Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await.map_err(|e| e.to_string())?;
        let info = stream.cached_info();
        let epoch = info.config.description.as_deref().and_then(|text| u64::from_str_radix(text, 16).ok());
        let epoch = epoch.ok_or("the frames' stream is not ours")?;
        let first = info.state.first_sequence.max(1);
        Ok(Tape { epoch, floor: first - 1, newest: info.state.last_sequence, stream })
    }

    /// Puts something on the tape: its place.
    pub async fn tape_put(&self, what: Bytes) -> Result<u64, Silence> {
        if !self.is_up() {
            return Err(Silence::Late);
        }
        let putting = async {
            let receipt = self.context.publish(self.place("frames"), what).await.map_err(drop)?;
            receipt.await.map_err(drop)
        };
        match tokio::time::timeout(limits::BUS_WAIT, putting).await {
            Ok(Ok(receipt)) => Ok(receipt.sequence),
            Ok(Err(())) | Err(_) => Err(Silence::Late),
        }
    }
}

/// The shared memory, as it was when it was opened.
pub(super) struct Tape {
    /// Another one whenever it was lost and begun anew.
    pub epoch: u64,
    /// What it holds comes after this place.
    pub floor: u64,
    pub newest: u64,
    stream: stream::Stream,
}

/// Everything on the tape, in its order.
pub(super) struct Reel(pull::Ordered);

impl Tape {
    pub async fn after(&self, place: u64) -> Result<Reel, String> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: place + 1 },
            ..pull::OrderedConfig::default()
        };
        let consumer = self.stream.create_consumer(config).await.map_err(|e| e.to_string())?;
        Ok(Reel(consumer.messages().await.map_err(|e| e.to_string())?))
    }
}

impl Reel {
    pub async fn next(&mut self) -> Result<(u64, Bytes), String> {
        let message = self.0.next().await.ok_or("the stream ended")?.map_err(|e| e.to_string())?;
        let place = message.info().map_err(|e| e.to_string())?.stream_sequence;
        Ok((place, message.message.payload))
    }
}
