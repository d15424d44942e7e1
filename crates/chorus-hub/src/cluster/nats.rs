//! NATS as the bus between hubs: subjects, requests, and JetStream for the frame stream. Nothing else in the hub knows NATS.

use super::hub_link::LinkMessage;
use super::nats_access::{NatsAccess, NatsIdentity};
use crate::bus::{FrameStreamName, FrameStreamState, RequestError};
use crate::settings::BusFiles;
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

/// How often the server is pinged; after three pings without an answer the connection is made anew.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// Max time until a connection stands, TLS and login included: some round trips to a server in the same network. A longer
/// one delays the attempt at the next server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);
/// Max messages that wait to be written. Beyond it a publish waits until its timeout.
const OUTBOUND_CAPACITY: usize = 16_384;
/// Max received messages that wait to be handled. Further ones are dropped; the next poll of the log makes up for them.
const INBOUND_CAPACITY: usize = 65_536;

/// Replicas of the frame stream in a NATS cluster, so that one server may be lost.
const STREAM_REPLICAS: usize = 3;

/// A subject: the text of the received message, which is not copied.
pub(super) type BusSubject = async_nats::Subject;

/// A subscription to one subject.
pub(super) type NatsMessages = async_nats::Subscriber;

/// A connection that reconnects by itself.
pub(crate) struct NatsLink {
    client: Client,
    jetstream_context: jetstream::Context,
    /// How many times it has been made.
    connect_count: watch::Receiver<u64>,
}

impl NatsLink {
    /// `url` may name several servers, separated by commas.
    pub(super) async fn connect(url: &Secret, files: &BusFiles) -> Result<Self, String> {
        let access = NatsAccess::load(url, files)?;
        let servers: Result<Vec<async_nats::ServerAddr>, _> =
            access.servers.iter().map(|server| server.parse()).collect();
        let servers = servers.map_err(|_| "not a nats:// URL".to_owned())?;
        let (connect_counter, connect_count) = watch::channel(0);
        let options = build_connect_options(&access, files)?
            .name("chorus")
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
            .client_capacity(OUTBOUND_CAPACITY)
            .subscription_capacity(INBOUND_CAPACITY)
            .reconnect_delay_callback(|_| RECONNECT_DELAY)
            .event_callback(move |event| {
                if event == Event::Connected {
                    connect_counter.send_modify(|count| *count += 1);
                } else {
                    tracing::warn!(%event, "the bus");
                }
                std::future::ready(())
            });
        // Each server gets the whole timeout.
        let total_timeout = CONNECT_TIMEOUT * u32::try_from(servers.len()).unwrap_or(u32::MAX);
        let connecting = tokio::time::timeout(total_timeout, options.connect(servers)).await;
        let client = connecting
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|e| describe_connect_error(&e))?;
        if access.exposes_secret && !client.server_info().tls_required {
            tracing::warn!(
                "what proves to the bus who we are goes over the network as it is; tls:// would hide it"
            );
        }
        let mut jetstream_context = jetstream::new(client.clone());
        jetstream_context.set_timeout(crate::limits::PEER_REQUEST_TIMEOUT);
        Ok(Self {
            client,
            jetstream_context,
            connect_count,
        })
    }

    pub(super) async fn open_frame_stream(
        &self,
        name: FrameStreamName,
        epoch: u64,
    ) -> Result<FrameStreamState, String> {
        let config = |num_replicas| stream::Config {
            name: name.stream.clone(),
            num_replicas,
            description: Some(format!("{epoch:x}")),
            subjects: vec![name.subject.clone()],
            storage: stream::StorageType::Memory,
            max_age: limits::RING_RETENTION,
            max_bytes: crate::limits::FRAME_STREAM_BYTES,
            discard: stream::DiscardPolicy::Old,
            ..stream::Config::default()
        };
        let replicas = if self.client.server_info().cluster.is_some() {
            STREAM_REPLICAS
        } else {
            1
        };
        let mut stream_result = self
            .jetstream_context
            .get_or_create_stream(config(replicas))
            .await;
        for _ in 0..2 {
            // Hubs that start together all create the stream: the second attempt finds that of the first. With fewer servers
            // than replicas, one server has it.
            if stream_result.is_err() {
                stream_result = self.jetstream_context.get_or_create_stream(config(1)).await;
            }
        }
        let stream = stream_result.map_err(|e| e.to_string())?;
        read_stream_state(stream.cached_info())
            .ok_or_else(|| "the frames' stream is not ours".to_owned())
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.client.connection_state(), State::Connected)
    }

    pub(super) fn watch_connects(&self) -> watch::Receiver<u64> {
        self.connect_count.clone()
    }

    pub(super) async fn publish(
        &self,
        subject: BusSubject,
        reply: Option<BusSubject>,
        payload: Bytes,
    ) -> Result<(), String> {
        let published = match reply {
            None => self.client.publish(subject, payload).await,
            Some(reply) => {
                self.client
                    .publish_with_reply(subject, reply, payload)
                    .await
            }
        };
        published.map_err(|e| e.to_string())
    }

    pub(super) async fn request(
        &self,
        subject: String,
        payload: Bytes,
    ) -> Result<LinkMessage, RequestError> {
        let request = async_nats::Request::new().payload(payload).timeout(None);
        match self.client.send_request(subject, request).await {
            Ok(answer) => Ok(LinkMessage::from(answer)),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                Err(RequestError::NoResponders)
            }
            Err(_) => Err(RequestError::Timeout),
        }
    }

    pub(super) async fn subscribe(&self, subject: String) -> Result<NatsMessages, String> {
        let subscriber = self
            .client
            .subscribe(subject)
            .await
            .map_err(|e| e.to_string())?;
        self.flush().await?;
        Ok(subscriber)
    }

    pub(super) fn new_inbox(&self) -> String {
        self.client.new_inbox()
    }

    pub(super) async fn flush(&self) -> Result<(), String> {
        self.client.flush().await.map_err(|e| e.to_string())
    }

    pub(super) async fn fetch_frame_stream(
        &self,
        name: FrameStreamName,
    ) -> Option<FrameStreamState> {
        let stream = self.jetstream_context.get_stream(name.stream).await.ok()?;
        read_stream_state(stream.cached_info())
    }

    pub(super) async fn append_frame(
        &self,
        subject: String,
        payload: Bytes,
    ) -> Result<u64, String> {
        let mut jetstream_context = self.jetstream_context.clone();
        jetstream_context.set_timeout(crate::limits::FRAME_PUBLISH_TIMEOUT);
        let receipt = jetstream_context
            .publish(subject, payload)
            .await
            .map_err(|e| e.to_string())?;
        let receipt = receipt.await.map_err(|e| e.to_string())?;
        Ok(receipt.sequence)
    }

    pub(super) async fn read_frames(
        &self,
        name: FrameStreamName,
        after_seq: u64,
    ) -> Result<NatsFrames, String> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: after_seq + 1,
            },
            ..pull::OrderedConfig::default()
        };
        let stream = self
            .jetstream_context
            .get_stream(name.stream)
            .await
            .map_err(|e| e.to_string())?;
        let consumer = stream
            .create_consumer(config)
            .await
            .map_err(|e| e.to_string())?;
        Ok(NatsFrames(
            consumer.messages().await.map_err(|e| e.to_string())?,
        ))
    }
}

impl From<async_nats::Message> for LinkMessage {
    fn from(message: async_nats::Message) -> Self {
        Self {
            subject: message.subject,
            reply: message.reply,
            payload: message.payload,
        }
    }
}

/// Reads the frame stream in order.
pub(super) struct NatsFrames(pull::Ordered);

impl NatsFrames {
    pub async fn next_frame(&mut self) -> Result<(u64, LinkMessage), String> {
        let message = self
            .0
            .next()
            .await
            .ok_or("the stream ended")?
            .map_err(|e| e.to_string())?;
        let seq = message.info().map_err(|e| e.to_string())?.stream_sequence;
        Ok((seq, LinkMessage::from(message.message)))
    }
}

/// Credentials and trusted roots. Certificate files are read for every connection, so that they can be renewed.
fn build_connect_options(access: &NatsAccess, files: &BusFiles) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new().require_tls(access.require_tls);
    if let Some(roots) = &files.root_certs {
        options = options.add_root_certificates(roots.clone());
    }
    if let Some((certificate, key)) = &files.client_cert {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(match &access.identity {
        NatsIdentity::Anonymous => options,
        NatsIdentity::Token(token) => options.token(token.expose().to_owned()),
        NatsIdentity::User { name, password } => {
            options.user_and_password(name.clone(), password.expose().to_owned())
        }
        // Without the parser's message: the file contains a seed.
        NatsIdentity::Credentials(text) => options.credentials(text.expose()).map_err(|_| {
            "--bus-credentials is no NATS credentials file: it has a JWT and a seed".to_owned()
        })?,
    })
}

/// The cause in terms of the settings.
fn describe_connect_error(error: &ConnectError) -> String {
    let text = error.to_string();
    if error.kind() == ConnectErrorKind::AuthorizationViolation {
        "the server does not know us by this user, token or credentials file".into()
    } else if text.contains("UnknownIssuer") {
        "the server's certificate is signed by no authority that this hub trusts; --bus-root-cert names one to trust"
            .into()
    } else if text.contains("InvalidContentType") {
        "the server speaks no TLS; switch it on there, or say nats:// to talk in the clear".into()
    } else {
        text
    }
}

/// `None` when the stream is not one of ours.
fn read_stream_state(info: &stream::Info) -> Option<FrameStreamState> {
    let epoch = info
        .config
        .description
        .as_deref()
        .and_then(|text| u64::from_str_radix(text, 16).ok())?;
    Some(FrameStreamState {
        epoch,
        floor_seq: info.state.first_sequence.max(1) - 1,
        newest_seq: info.state.last_sequence,
    })
}
