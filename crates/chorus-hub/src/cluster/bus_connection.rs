//! The connection of a hub to its peers: publish, request-reply under one subject prefix, and the frame stream. Every message is
//! signed here when it is sent, and checked here before any other part sees it (D-106).

use super::hub_link::{HubLink, LinkFrames, LinkMessage, LinkMessages};
use super::message_auth::{MessageAuth, MessageKind, MessageTag};
use super::nats::BusSubject;
use crate::bus::{FrameStreamName, FrameStreamState, RequestError};
use bytes::Bytes;
use futures_util::{Stream, stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The bus, and what it needs to talk to the hubs of one database.
pub(super) struct BusConnection {
    link: HubLink,
    subject_prefix: String,
    message_auth: Arc<MessageAuth>,
}

/// A message to this hub, from a hub of this cluster.
pub(super) struct InboundMessage {
    pub payload: Bytes,
    tag: MessageTag,
    /// Where the answer goes, if one is expected.
    reply_subject: Option<BusSubject>,
}

/// A subscription to one subject.
pub(super) struct BusSubscription {
    messages: LinkMessages,
    kind: MessageKind,
    message_auth: Arc<MessageAuth>,
}

impl BusSubscription {
    pub fn into_messages(self) -> impl Stream<Item = InboundMessage> + Send {
        stream::unfold(self, |mut subscription| async move {
            let message = subscription.next_message().await?;
            Some((message, subscription))
        })
    }

    /// The next message of a hub of this cluster; `None` when the connection is closed for good.
    async fn next_message(&mut self) -> Option<InboundMessage> {
        loop {
            let message = self.messages.next_message().await?;
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
pub(super) struct UnsignedSubscription(LinkMessages);

/// A message that anyone on the bus may have sent.
pub(super) struct UnsignedMessage {
    pub payload: Bytes,
    reply_subject: Option<BusSubject>,
}

impl UnsignedSubscription {
    pub fn into_messages(self) -> impl Stream<Item = UnsignedMessage> + Send {
        stream::unfold(self, |mut subscription| async move {
            let message = subscription.next_message().await?;
            Some((message, subscription))
        })
    }

    /// `None` when the connection is closed for good.
    pub async fn next_message(&mut self) -> Option<UnsignedMessage> {
        let message = self.0.next_message().await?;
        Some(UnsignedMessage {
            payload: message.payload,
            reply_subject: message.reply,
        })
    }
}

impl BusConnection {
    pub fn new(link: HubLink, subject_prefix: String, message_auth: MessageAuth) -> Self {
        Self {
            link,
            subject_prefix,
            message_auth: Arc::new(message_auth),
        }
    }

    pub fn is_connected(&self) -> bool {
        self.link.is_connected()
    }

    /// Changes with every connect.
    pub fn watch_connects(&self) -> watch::Receiver<u64> {
        self.link.watch_connects()
    }

    fn full_subject(&self, to: &str) -> String {
        format!("{}.{to}", self.subject_prefix)
    }

    /// Publishes without an answer. Dropped when the bus is not connected.
    pub async fn publish(&self, kind: MessageKind, subject: &str, payload: &[u8]) {
        if self.is_connected() {
            let subject = self.full_subject(subject);
            let (message, _) = self.message_auth.sign(kind, &subject, payload);
            self.publish_within(subject.into(), message).await;
        }
    }

    async fn publish_within(&self, subject: BusSubject, payload: Bytes) {
        let publishing = self.link.publish(subject, None, payload);
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
        let sending = self.link.request(subject, message);
        match tokio::time::timeout(timeout, sending).await {
            // An answer that the peer did not give tells as little as none.
            Ok(Ok(answer)) => self
                .message_auth
                .verify_reply(&answer.subject, &tag, &answer.payload)
                .ok_or(RequestError::Timeout),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(RequestError::Timeout),
        }
    }

    pub async fn send_reply(&self, message: &InboundMessage, payload: &[u8]) {
        if let Some(subject) = &message.reply_subject {
            let reply = self.message_auth.sign_reply(subject, &message.tag, payload);
            self.publish_within(subject.clone(), reply).await;
        }
    }

    /// Subscribes to a subject. When it returns, the bus knows of the subscription.
    pub async fn subscribe(
        &self,
        kind: MessageKind,
        name: &str,
    ) -> Result<BusSubscription, String> {
        Ok(BusSubscription {
            messages: self.link.subscribe(self.full_subject(name)).await?,
            kind,
            message_auth: self.message_auth.clone(),
        })
    }

    /// Subscribes to messages that are not authenticated.
    pub async fn subscribe_unsigned(&self, name: &str) -> Result<UnsignedSubscription, String> {
        let messages = self.link.subscribe(self.full_subject(name)).await?;
        Ok(UnsignedSubscription(messages))
    }

    /// Asks all subscribers of a subject at once, without authentication. Returns where their answers arrive.
    pub async fn ask_unsigned(&self, subject: &str) -> Result<UnsignedSubscription, String> {
        let inbox = self.link.new_inbox();
        let answers = self.link.subscribe(inbox.clone()).await?;
        let subject = self.full_subject(subject).into();
        self.link
            .publish(subject, Some(inbox.into()), Bytes::new())
            .await?;
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
            let flushing = self.link.flush();
            let _ = tokio::time::timeout(crate::limits::PEER_REQUEST_TIMEOUT, flushing).await;
        }
    }

    fn frame_stream_name(&self) -> FrameStreamName {
        FrameStreamName {
            stream: format!("{}-frames", self.subject_prefix.replace('.', "-")),
            subject: self.full_subject("frames"),
        }
    }

    /// Opens the frame stream, and creates it with `epoch` if there is none.
    pub async fn open_frame_stream(&self, epoch: u64) -> Result<FrameStreamState, String> {
        self.link
            .open_frame_stream(self.frame_stream_name(), epoch)
            .await
    }

    /// Reads the frame stream after a sequence.
    pub async fn consume_frames(&self, after_seq: u64) -> Result<FrameConsumer, String> {
        let reader = self
            .link
            .read_frames(self.frame_stream_name(), after_seq)
            .await?;
        Ok(FrameConsumer(reader))
    }

    /// The epoch and newest sequence of the frame stream; `None` when there is none.
    pub async fn fetch_stream_state(&self) -> Option<(u64, u64)> {
        let state = self
            .link
            .fetch_frame_stream(self.frame_stream_name())
            .await?;
        Some((state.epoch, state.newest_seq))
    }

    /// The content of a message of the frame stream; `None` when no hub of this cluster has sent it, or it was read before.
    pub fn open_frame(&self, frame: &SignedFrame) -> Option<Bytes> {
        let SignedFrame(message) = frame;
        let authentic =
            self.message_auth
                .verify(MessageKind::Frame, &message.subject, &message.payload)?;
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
        let mut publishing = std::pin::pin!(self.link.append_frame(subject, message));
        let deadline = Instant::now() + crate::limits::FRAME_PUBLISH_TIMEOUT;
        loop {
            match tokio::time::timeout(crate::limits::PEER_REQUEST_TIMEOUT, &mut publishing).await {
                Ok(Ok(seq)) => return Ok(seq),
                // A busy server is waited for, a lost connection is not.
                Err(_) if self.is_connected() && Instant::now() < deadline => {}
                Ok(Err(_)) | Err(_) => return Err(RequestError::Timeout),
            }
        }
    }
}

/// Reads the frame stream in order.
pub(super) struct FrameConsumer(LinkFrames);

/// A message of the frame stream that is not checked yet. It is checked where it is applied, because one that is read and not
/// applied is read again, and must not be refused as a replay.
#[derive(Clone)]
pub(super) struct SignedFrame(LinkMessage);

impl FrameConsumer {
    pub async fn next_frame(&mut self) -> Result<(u64, SignedFrame), String> {
        let (seq, message) = self.0.next_frame().await?;
        Ok((seq, SignedFrame(message)))
    }
}
