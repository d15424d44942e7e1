//! How a hub reaches its peers: over NATS, or over the bus of a simulation (D-110). An enum and not a trait object, because every
//! send of a cluster passes here: for NATS nothing is boxed, and no text is copied.

use super::nats::{BusSubject, NatsFrames, NatsLink, NatsMessages};
use crate::bus::{
    BusLink, BusMessage, FrameReader, FrameStreamName, FrameStreamState, RequestError,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use tokio::sync::watch;

#[expect(
    clippy::large_enum_variant,
    reason = "there are few of them, and a box would be one more step for each message"
)]
pub(crate) enum HubLink {
    Nats(NatsLink),
    Simulated(Arc<dyn BusLink>),
}

/// A message as it was received.
#[derive(Clone)]
pub(super) struct LinkMessage {
    pub subject: BusSubject,
    /// Where the answer goes, if one is expected.
    pub reply: Option<BusSubject>,
    pub payload: Bytes,
}

impl From<BusMessage> for LinkMessage {
    fn from(message: BusMessage) -> Self {
        Self {
            subject: message.subject.into(),
            reply: message.reply.map(BusSubject::from),
            payload: message.payload,
        }
    }
}

/// The messages of one subscription.
pub(super) enum LinkMessages {
    Nats(NatsMessages),
    Simulated(BoxStream<'static, BusMessage>),
}

impl LinkMessages {
    /// `None` when the connection is closed for good.
    pub async fn next_message(&mut self) -> Option<LinkMessage> {
        match self {
            Self::Nats(messages) => messages.next().await.map(LinkMessage::from),
            Self::Simulated(messages) => messages.next().await.map(LinkMessage::from),
        }
    }
}

/// Reads the frame stream in order.
#[expect(
    clippy::large_enum_variant,
    reason = "there are few of them, and a box would be one more step for each message"
)]
pub(super) enum LinkFrames {
    Nats(NatsFrames),
    Simulated(FrameReader),
}

impl LinkFrames {
    pub async fn next_frame(&mut self) -> Result<(u64, LinkMessage), String> {
        match self {
            Self::Nats(frames) => frames.next_frame().await,
            Self::Simulated(frames) => {
                let (seq, message) = frames.next().await.ok_or("the stream ended")??;
                Ok((seq, LinkMessage::from(message)))
            }
        }
    }
}

impl HubLink {
    pub fn is_connected(&self) -> bool {
        match self {
            Self::Nats(link) => link.is_connected(),
            Self::Simulated(link) => link.is_connected(),
        }
    }

    /// Changes with every connect.
    pub fn watch_connects(&self) -> watch::Receiver<u64> {
        match self {
            Self::Nats(link) => link.watch_connects(),
            Self::Simulated(link) => link.watch_connects(),
        }
    }

    /// Sends to all subscribers of the subject, and says where answers go.
    pub(super) async fn publish(
        &self,
        subject: BusSubject,
        reply: Option<BusSubject>,
        payload: Bytes,
    ) -> Result<(), String> {
        match self {
            Self::Nats(link) => link.publish(subject, reply, payload).await,
            Self::Simulated(link) => {
                link.publish(BusMessage {
                    subject: subject.into_string(),
                    reply: reply.map(BusSubject::into_string),
                    payload,
                })
                .await
            }
        }
    }

    /// Sends to the subscribers of the subject and waits for the first answer, without a limit.
    pub(super) async fn request(
        &self,
        subject: String,
        payload: Bytes,
    ) -> Result<LinkMessage, RequestError> {
        match self {
            Self::Nats(link) => link.request(subject, payload).await,
            Self::Simulated(link) => link.request(subject, payload).await.map(LinkMessage::from),
        }
    }

    /// When it returns, the bus knows of the subscription.
    pub(super) async fn subscribe(&self, subject: String) -> Result<LinkMessages, String> {
        Ok(match self {
            Self::Nats(link) => LinkMessages::Nats(link.subscribe(subject).await?),
            Self::Simulated(link) => LinkMessages::Simulated(link.subscribe(subject).await?),
        })
    }

    /// A subject that no other hub subscribes to.
    pub(super) fn new_inbox(&self) -> String {
        match self {
            Self::Nats(link) => link.new_inbox(),
            Self::Simulated(link) => link.new_inbox(),
        }
    }

    /// Writes out pending messages.
    pub(super) async fn flush(&self) -> Result<(), String> {
        match self {
            Self::Nats(link) => link.flush().await,
            Self::Simulated(link) => link.flush().await,
        }
    }

    /// Opens the frame stream, and creates it with `epoch` if there is none.
    pub(super) async fn open_frame_stream(
        &self,
        name: FrameStreamName,
        epoch: u64,
    ) -> Result<FrameStreamState, String> {
        match self {
            Self::Nats(link) => link.open_frame_stream(name, epoch).await,
            Self::Simulated(link) => link.open_frame_stream(name, epoch).await,
        }
    }

    /// The frame stream as it is now; `None` when there is none.
    pub(super) async fn fetch_frame_stream(
        &self,
        name: FrameStreamName,
    ) -> Option<FrameStreamState> {
        match self {
            Self::Nats(link) => link.fetch_frame_stream(name).await,
            Self::Simulated(link) => link.fetch_frame_stream(name).await,
        }
    }

    /// Appends to the frame stream. Returns the sequence.
    pub(super) async fn append_frame(
        &self,
        subject: String,
        payload: Bytes,
    ) -> Result<u64, String> {
        match self {
            Self::Nats(link) => link.append_frame(subject, payload).await,
            Self::Simulated(link) => link.append_frame(subject, payload).await,
        }
    }

    /// Reads the frame stream in order after a sequence.
    pub(super) async fn read_frames(
        &self,
        name: FrameStreamName,
        after_seq: u64,
    ) -> Result<LinkFrames, String> {
        Ok(match self {
            Self::Nats(link) => LinkFrames::Nats(link.read_frames(name, after_seq).await?),
            Self::Simulated(link) => {
                LinkFrames::Simulated(link.read_frames(name, after_seq).await?)
            }
        })
    }
}
