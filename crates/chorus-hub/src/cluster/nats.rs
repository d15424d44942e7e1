//! The NATS connection: publish, request-reply under one subject prefix, and the JetStream frame stream. Every message is signed
//! here when it is sent, and checked here before any other part sees it (D-106).

use super::message_auth::{MessageAuth, MessageKind, MessageTag};
use super::nats_access::{NatsAccess, NatsIdentity};
use crate::settings::BusFiles;
use async_nats::jetstream::{self, consumer::DeliverPolicy, consumer::pull, stream};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, RequestErrorKind,
    connection::State,
};
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the server is pinged; after three pings without an answer the connection is made anew.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between attempts to reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);
/// Max messages that wait to be written. Beyond it a publish waits until its timeout.
const OUTBOUND_CAPACITY: usize = 16_384;
/// Max received messages that wait to be handled. Further ones are dropped; the next poll of the log makes up for them.
const INBOUND_CAPACITY: usize = 65_536;

/// Replicas of the frame stream in a NATS cluster, so that one server may be lost.
const STREAM_REPLICAS: usize = 3;

/// A connection that reconnects by itself.
pub(super) struct NatsConnection {
    client: Client,
    jetstream_context: jetstream::Context,
    subject_prefix: String,
    message_auth: Arc<MessageAuth>,
    /// How many times it has been made.
    connect_count: watch::Receiver<u64>,
}

/// A message to this hub, from a hub of this cluster.
pub(super) struct InboundMessage {
    pub payload: Bytes,
    tag: MessageTag,
    /// Where the answer goes, if one is expected.
    reply_subject: Option<async_nats::Subject>,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// No hub subscribes to the subject.
    NoResponders,
    /// No answer in time, or NATS is not connected.
    Timeout,
}

/// A subscription to one subject.
pub(super) struct NatsSubscription {
    subscriber: async_nats::Subscriber,
    kind: MessageKind,
    message_auth: Arc<MessageAuth>,
}

impl NatsSubscription {
    /// The next message of a hub of this cluster; `None` when the connection is closed for good.
    pub async fn next_message(&mut self) -> Option<InboundMessage> {
        loop {
            let message = self.subscriber.next().await?;
            let authentic = self
                .message_auth
                .verify(self.kind, &message.subject, &message.payload);
            if let Some(authentic) = authentic {
                return Some(InboundMessage {
                    payload: authentic.body,
                    tag: authentic.tag,
                    reply_subject: message.reply,
                });
            }
        }
    }
}

/// A subscription to messages that anyone on the bus may have sent.
pub(super) struct UnsignedSubscription(async_nats::Subscriber);

/// A message that anyone on the bus may have sent.
pub(super) struct UnsignedMessage {
    pub payload: Bytes,
    reply_subject: Option<async_nats::Subject>,
}

impl UnsignedSubscription {
    /// `None` when the connection is closed for good.
    pub async fn next_message(&mut self) -> Option<UnsignedMessage> {
        let message = self.0.next().await?;
        Some(UnsignedMessage {
            payload: message.payload,
            reply_subject: message.reply,
        })
    }
}

impl NatsConnection {
    /// `url` may name several servers, separated by commas.
    pub async fn connect(
        url: &Secret,
        files: &BusFiles,
        subject_prefix: String,
        message_auth: MessageAuth,
    ) -> Result<Self, String> {
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
            subject_prefix,
            message_auth: Arc::new(message_auth),
            connect_count,
        })
    }

    pub fn is_connected(&self) -> bool {
        matches!(self.client.connection_state(), State::Connected)
    }

    /// Changes with every connect.
    pub fn watch_connects(&self) -> watch::Receiver<u64> {
        self.connect_count.clone()
    }

    fn full_subject(&self, to: &str) -> String {
        format!("{}.{to}", self.subject_prefix)
    }

    /// Publishes without an answer. Dropped when NATS is not connected.
    pub async fn publish(&self, kind: MessageKind, subject: &str, payload: &[u8]) {
        if self.is_connected() {
            let subject = self.full_subject(subject);
            let (message, _) = self.message_auth.sign(kind, &subject, payload);
            self.publish_within(subject.into(), message).await;
        }
    }

    async fn publish_within(&self, subject: async_nats::Subject, message: Bytes) {
        let publishing = self.client.publish(subject, message);
        let _ = tokio::time::timeout(crate::limits::PEER_REQUEST_TIMEOUT, publishing).await;
    }

    pub async fn request(
        &self,
        subject: &str,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<Bytes, RequestError> {
        if !self.is_connected() {
            return Err(RequestError::Timeout);
        }
        let subject = self.full_subject(subject);
        let (message, tag) = self
            .message_auth
            .sign(MessageKind::Request, &subject, payload);
        let request = async_nats::Request::new().payload(message).timeout(None);
        let sending = self.client.send_request(subject, request);
        match tokio::time::timeout(timeout, sending).await {
            // An answer that the peer did not give tells as little as none.
            Ok(Ok(answer)) => self
                .message_auth
                .verify_reply(&answer.subject, &tag, &answer.payload)
                .ok_or(RequestError::Timeout),
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                Err(RequestError::NoResponders)
            }
            Ok(Err(_)) | Err(_) => Err(RequestError::Timeout),
        }
    }

    pub async fn send_reply(&self, message: &InboundMessage, payload: &[u8]) {
        if let Some(subject) = &message.reply_subject {
            let reply = self.message_auth.sign_reply(subject, &message.tag, payload);
            self.publish_within(subject.clone(), reply).await;
        }
    }

    /// Subscribes to a subject. When it returns, the server knows of the subscription.
    pub async fn subscribe(
        &self,
        kind: MessageKind,
        name: &str,
    ) -> Result<NatsSubscription, String> {
        Ok(NatsSubscription {
            subscriber: self.subscribe_to(self.full_subject(name)).await?,
            kind,
            message_auth: self.message_auth.clone(),
        })
    }

    /// Subscribes to messages that are not authenticated.
    pub async fn subscribe_unsigned(&self, name: &str) -> Result<UnsignedSubscription, String> {
        let subscriber = self.subscribe_to(self.full_subject(name)).await?;
        Ok(UnsignedSubscription(subscriber))
    }

    async fn subscribe_to(&self, subject: String) -> Result<async_nats::Subscriber, String> {
        let subscriber = self
            .client
            .subscribe(subject)
            .await
            .map_err(|e| e.to_string())?;
        self.client.flush().await.map_err(|e| e.to_string())?;
        Ok(subscriber)
    }

    /// Asks all subscribers of a subject at once, without authentication. Returns where their answers arrive.
    pub async fn ask_unsigned(&self, subject: &str) -> Result<UnsignedSubscription, String> {
        let inbox = self.client.new_inbox();
        let answers = self.subscribe_to(inbox.clone()).await?;
        self.client
            .publish_with_reply(self.full_subject(subject), inbox, Bytes::new())
            .await
            .map_err(|e| e.to_string())?;
        Ok(UnsignedSubscription(answers))
    }

    pub async fn send_unsigned_reply(&self, message: &UnsignedMessage, payload: Bytes) {
        if let Some(subject) = &message.reply_subject {
            self.publish_within(subject.clone(), payload).await;
        }
    }

    /// Writes out pending messages, before the process ends.
    pub async fn flush(&self) {
        if self.is_connected() {
            let _ = tokio::time::timeout(crate::limits::PEER_REQUEST_TIMEOUT, self.client.flush())
                .await;
        }
    }

    fn stream_name(&self) -> String {
        format!("{}-frames", self.subject_prefix.replace('.', "-"))
    }

    /// Opens the frame stream, and creates it with `epoch` if there is none.
    pub async fn open_frame_stream(&self, epoch: u64) -> Result<SharedFrameStream, String> {
        let config = |num_replicas| stream::Config {
            name: self.stream_name(),
            num_replicas,
            description: Some(format!("{epoch:x}")),
            subjects: vec![self.full_subject("frames")],
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
        let info = stream.cached_info();
        let epoch = parse_stream_epoch(info).ok_or("the frames' stream is not ours")?;
        let first_seq = info.state.first_sequence.max(1);
        Ok(SharedFrameStream {
            epoch,
            floor_seq: first_seq - 1,
            newest_seq: info.state.last_sequence,
            stream,
        })
    }

    /// The epoch and newest sequence of the frame stream; `None` when there is none.
    pub async fn fetch_stream_state(&self) -> Option<(u64, u64)> {
        let stream = self
            .jetstream_context
            .get_stream(self.stream_name())
            .await
            .ok()?;
        let info = stream.cached_info();
        Some((parse_stream_epoch(info)?, info.state.last_sequence))
    }

    /// The content of a message of the frame stream; `None` when no hub of this cluster has sent it, or it was read before.
    pub fn open_frame(&self, frame: &SignedFrame) -> Option<Bytes> {
        let authentic =
            self.message_auth
                .verify(MessageKind::Frame, &frame.subject, &frame.message)?;
        Some(authentic.body)
    }

    /// Appends to the frame stream. Returns the sequence.
    pub async fn publish_frame(&self, payload: &[u8]) -> Result<u64, RequestError> {
        if !self.is_connected() {
            return Err(RequestError::Timeout);
        }
        let subject = self.full_subject("frames");
        let (message, _) = self
            .message_auth
            .sign(MessageKind::Frame, &subject, payload);
        let mut jetstream_context = self.jetstream_context.clone();
        jetstream_context.set_timeout(crate::limits::FRAME_PUBLISH_TIMEOUT);
        let mut publishing = std::pin::pin!(async {
            let receipt = jetstream_context
                .publish(subject, message)
                .await
                .map_err(drop)?;
            receipt.await.map_err(drop)
        });
        let deadline = Instant::now() + crate::limits::FRAME_PUBLISH_TIMEOUT;
        loop {
            match tokio::time::timeout(crate::limits::PEER_REQUEST_TIMEOUT, &mut publishing).await {
                Ok(Ok(receipt)) => return Ok(receipt.sequence),
                // A busy server is waited for, a lost connection is not.
                Err(_) if self.is_connected() && Instant::now() < deadline => {}
                Ok(Err(())) | Err(_) => return Err(RequestError::Timeout),
            }
        }
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
        "the server's certificate is signed by nobody we trust; --bus-root-cert says whom to trust"
            .into()
    } else if text.contains("InvalidContentType") {
        "the server speaks no TLS; switch it on there, or say nats:// to talk in the clear".into()
    } else {
        text
    }
}

fn parse_stream_epoch(info: &stream::Info) -> Option<u64> {
    info.config
        .description
        .as_deref()
        .and_then(|text| u64::from_str_radix(text, 16).ok())
}

/// The frame stream, as it was when it was opened.
pub(super) struct SharedFrameStream {
    /// A recreated stream has another epoch.
    pub epoch: u64,
    /// Its frames come after this sequence.
    pub floor_seq: u64,
    pub newest_seq: u64,
    stream: stream::Stream,
}

/// Reads the frame stream in order.
pub(super) struct FrameConsumer(pull::Ordered);

impl SharedFrameStream {
    pub async fn consume_after(&self, seq: u64) -> Result<FrameConsumer, String> {
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: seq + 1,
            },
            ..pull::OrderedConfig::default()
        };
        let consumer = self
            .stream
            .create_consumer(config)
            .await
            .map_err(|e| e.to_string())?;
        Ok(FrameConsumer(
            consumer.messages().await.map_err(|e| e.to_string())?,
        ))
    }
}

/// A message of the frame stream that is not checked yet. It is checked where it is applied, because one that is read and not
/// applied is read again, and must not be refused as a replay.
#[derive(Clone)]
pub(super) struct SignedFrame {
    subject: async_nats::Subject,
    message: Bytes,
}

impl FrameConsumer {
    pub async fn next_frame(&mut self) -> Result<(u64, SignedFrame), String> {
        let message = self
            .0
            .next()
            .await
            .ok_or("the stream ended")?
            .map_err(|e| e.to_string())?;
        let seq = message.info().map_err(|e| e.to_string())?.stream_sequence;
        let frame = SignedFrame {
            subject: message.message.subject,
            message: message.message.payload,
        };
        Ok((seq, frame))
    }
}
