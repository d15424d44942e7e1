//! NATS as hubs use it: one connection, names under one root, and questions that know at once when nobody is there to answer.

use super::access::{Access, BusFiles, Who};
use async_nats::jetstream::{self, consumer::DeliverPolicy, consumer::pull, stream};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, RequestErrorKind,
    connection::State,
};
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the connection is tried; three that nobody answered end it.
const PING: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(5);
/// The pauses between attempts to connect again.
const AGAIN: Duration = Duration::from_millis(200);
/// Said and not yet written: beyond it whoever speaks waits, and gives up in its time.
const UNWRITTEN: usize = 16_384;
/// Heard and not yet looked at; what comes beyond it is dropped, and found missing by the next look at the log.
const UNHEARD: usize = 65_536;

/// How many servers of a cluster have the memory that hubs share: so many that one may be lost.
const REPLICAS: usize = 3;

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
        Some(Heard {
            payload: message.payload,
            reply: message.reply,
        })
    }
}

impl Nats {
    /// `url` may name several servers, separated by commas.
    pub async fn connect(url: &Secret, files: &BusFiles, root: String) -> Result<Self, String> {
        let access = Access::read(url, files)?;
        let servers: Result<Vec<async_nats::ServerAddr>, _> =
            access.servers.iter().map(|one| one.parse()).collect();
        let servers = servers.map_err(|_| "not a nats:// URL".to_owned())?;
        let (made, times) = watch::channel(0);
        let options = introduced(&access, files)?
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
        // One that does not answer leaves the next its time.
        let patience = CONNECT * u32::try_from(servers.len()).unwrap_or(u32::MAX);
        let connecting = tokio::time::timeout(patience, options.connect(servers)).await;
        let client = connecting
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|e| said(&e))?;
        if access.exposed && !client.server_info().tls_required {
            tracing::warn!(
                "what proves to the bus who we are goes over the network as it is; tls:// would hide it"
            );
        }
        let mut context = jetstream::new(client.clone());
        context.set_timeout(limits::BUS_WAIT);
        Ok(Self {
            client,
            context,
            root,
            made: times,
        })
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
            let _ =
                tokio::time::timeout(limits::BUS_WAIT, self.client.publish(self.place(to), what))
                    .await;
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
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                Err(Silence::Nobody)
            }
            Ok(Err(_)) | Err(_) => Err(Silence::Late),
        }
    }

    pub async fn answer(&self, question: &Heard, what: Bytes) {
        if let Some(reply) = &question.reply {
            let _ =
                tokio::time::timeout(limits::BUS_WAIT, self.client.publish(reply.clone(), what))
                    .await;
        }
    }

    /// From here on everything said to `name` is heard: the server knows when this returns.
    pub async fn listen(&self, name: &str) -> Result<Ear, String> {
        let ear = self
            .client
            .subscribe(self.place(name))
            .await
            .map_err(|e| e.to_string())?;
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
        let config = |num_replicas| stream::Config {
            name: self.tape(),
            num_replicas,
            description: Some(format!("{epoch:x}")),
            subjects: vec![self.place("frames")],
            storage: stream::StorageType::Memory,
            max_age: limits::RING_KEPT,
            max_bytes: limits::TAPE_BYTES,
            discard: stream::DiscardPolicy::Old,
            ..stream::Config::default()
        };
        let replicas = if self.client.server_info().cluster.is_some() {
            REPLICAS
        } else {
            1
        };
        let mut opened = self.context.get_or_create_stream(config(replicas)).await;
        for _ in 0..2 {
            // Hubs that start together all find none and make one: who comes second takes the first one's. And where there
            // are not as many servers, one has it.
            if opened.is_err() {
                opened = self.context.get_or_create_stream(config(1)).await;
            }
        }
        let stream = opened.map_err(|e| e.to_string())?;
        let info = stream.cached_info();
        let epoch = epoch_of(info).ok_or("the frames' stream is not ours")?;
        let first = info.state.first_sequence.max(1);
        Ok(Tape {
            epoch,
            floor: first - 1,
            newest: info.state.last_sequence,
            stream,
        })
    }

    /// Which life of the shared memory this is now, and the place of the newest in it; nothing when there is none.
    pub async fn tape_now(&self) -> Option<(u64, u64)> {
        let stream = self.context.get_stream(self.tape()).await.ok()?;
        let info = stream.cached_info();
        Some((epoch_of(info)?, info.state.last_sequence))
    }

    /// Puts something on the tape: its place.
    pub async fn tape_put(&self, what: Bytes) -> Result<u64, Silence> {
        if !self.is_up() {
            return Err(Silence::Late);
        }
        let mut context = self.context.clone();
        context.set_timeout(limits::BUS_PUT);
        let mut putting = std::pin::pin!(async {
            let receipt = context
                .publish(self.place("frames"), what)
                .await
                .map_err(drop)?;
            receipt.await.map_err(drop)
        });
        let until = Instant::now() + limits::BUS_PUT;
        loop {
            match tokio::time::timeout(limits::BUS_WAIT, &mut putting).await {
                Ok(Ok(receipt)) => return Ok(receipt.sequence),
                // A server that is busy is waited for, and one that is lost is not.
                Err(_) if self.is_up() && Instant::now() < until => {}
                Ok(Err(())) | Err(_) => return Err(Silence::Late),
            }
        }
    }
}

/// Options that say who we are and whom we trust. Certificates are read for every connection, and may be renewed meanwhile.
fn introduced(access: &Access, files: &BusFiles) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new().require_tls(access.encrypted);
    if let Some(roots) = &files.roots {
        options = options.add_root_certificates(roots.clone());
    }
    if let Some((certificate, key)) = &files.own {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(match &access.who {
        Who::Nobody => options,
        Who::Token(token) => options.token(token.expose().to_owned()),
        Who::User { name, password } => {
            options.user_and_password(name.clone(), password.expose().to_owned())
        }
        // Nothing of the parser's complaint: the file holds a seed.
        Who::Credentials(text) => options.credentials(text.expose()).map_err(|_| {
            "--bus-credentials is no NATS credentials file: it has a JWT and a seed".to_owned()
        })?,
    })
}

/// What is wrong, for somebody who has the settings before them.
fn said(error: &ConnectError) -> String {
    let text = error.to_string();
    if error.kind() == ConnectErrorKind::AuthorizationViolation {
        "the server does not know us by this user, token or credentials file".into()
    } else if text.contains("UnknownIssuer") {
        "the server's certificate is signed by nobody we trust; --bus-root-cert says whom to trust"
            .into()
    } else if text.contains("InvalidContentType") {
        "the server speaks no TLS; switch it on there, or say nats:// to talk in the clear".into()
    } else {
        text
    }
}

fn epoch_of(info: &stream::Info) -> Option<u64> {
    info.config
        .description
        .as_deref()
        .and_then(|text| u64::from_str_radix(text, 16).ok())
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
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: place + 1,
            },
            ..pull::OrderedConfig::default()
        };
        let consumer = self
            .stream
            .create_consumer(config)
            .await
            .map_err(|e| e.to_string())?;
        Ok(Reel(consumer.messages().await.map_err(|e| e.to_string())?))
    }
}

impl Reel {
    pub async fn next(&mut self) -> Result<(u64, Bytes), String> {
        let message = self
            .0
            .next()
            .await
            .ok_or("the stream ended")?
            .map_err(|e| e.to_string())?;
        let place = message.info().map_err(|e| e.to_string())?.stream_sequence;
        Ok((place, message.message.payload))
    }
}
