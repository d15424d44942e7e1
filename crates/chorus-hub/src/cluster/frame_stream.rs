//! The frame stream: a JetStream memory stream through which all hubs replicate frames in one order (D-82).

use super::bus_connection::{BusConnection, FrameConsumer, SignedFrame};
use super::peer_client::PeerClient;
use super::protocol::{FrameQuery, HubId};
use crate::bus::RequestError;
use crate::limits;
use crate::store::{AgentId, CacheInvalidation};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;

/// The pause between attempts to open the stream again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// How often the epoch is checked. A stream can be deleted, or lost with one of several servers, while the connection holds; its
/// consumer would then wait for ever.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What the frame protocol does for the cluster.
pub(crate) trait FrameHandler: Send + Sync {
    /// The stream begins a new epoch, or frames were lost: those up to `floor_seq` are not available here.
    fn begin_epoch(&self, epoch: u64, floor_seq: u64);
    /// The next frame of the stream; without a payload, no hub of this cluster has sent it.
    fn apply_frame(&self, seq: u64, payload: Option<&[u8]>);
    /// The answer to a peer's query; empty when there is none yet, so that the peer asks again.
    fn answer_query(&self, query: FrameQuery) -> BoxFuture<'_, Bytes>;
    /// Live frame sessions of a principal on this hub.
    fn session_count(&self, principal: AgentId) -> u32;
    /// Drops what a committed change made invalid; `None` stands for everything.
    fn apply_invalidation(&self, invalidation: Option<&CacheInvalidation>);
}

/// The handler that the frame protocol registers, once it is built.
#[derive(Clone, Default)]
pub(super) struct RegisteredFrames(Arc<OnceLock<Box<dyn FrameHandler>>>);

impl RegisteredFrames {
    pub fn register(&self, handler: Box<dyn FrameHandler>) {
        let _ = self.0.set(handler);
    }

    pub fn handler(&self) -> Option<&dyn FrameHandler> {
        self.0.get().map(|handler| &**handler)
    }
}

/// How far this hub has read the stream of one epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPosition {
    epoch: u64,
    seq: u64,
}

/// Publishes frames to all hubs, follows the stream, and asks peers about their sessions.
pub(crate) struct FrameStream {
    client: Arc<PeerClient>,
    registered_frames: RegisteredFrames,
    /// Notified when the stream may have another epoch.
    recheck_wakeup: Notify,
}

impl FrameStream {
    pub(super) fn new(client: Arc<PeerClient>, registered_frames: RegisteredFrames) -> Self {
        Self {
            client,
            registered_frames,
            recheck_wakeup: Notify::new(),
        }
    }

    /// Publishes a frame to all hubs. Returns its sequence.
    pub async fn publish_frame(&self, payload: &[u8]) -> Result<u64, RequestError> {
        let nats = self.client.nats().ok_or(RequestError::Timeout)?;
        let published = nats.publish_frame(payload).await;
        if published.is_err() {
            self.recheck();
        }
        published
    }

    /// Checks the epoch now, because a frame did not come back.
    pub fn recheck(&self) {
        self.recheck_wakeup.notify_one();
    }

    /// Frame sessions of a principal at peers.
    pub fn remote_session_count(&self, principal: AgentId) -> usize {
        self.client.peers.session_count(principal)
    }

    /// The answers of the frame handlers of all peers; an error when one of them does not answer (D-93).
    pub async fn query_all_peers<T>(
        &self,
        query: FrameQuery,
        parse: impl Fn(&[u8]) -> Option<T> + Copy,
    ) -> Result<Vec<(HubId, T)>, RequestError> {
        self.client.query_all_peers(query, parse).await
    }

    /// The answer of one peer.
    pub async fn query_peer<T>(
        &self,
        hub: HubId,
        query: FrameQuery,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, RequestError> {
        self.client.query_peer(hub, query, parse).await
    }

    /// Opens the stream and reads what it contains, so that a NATS without JetStream is known at start, and a session that opens
    /// now gets only frames from now on.
    pub(super) async fn open(
        &self,
        nats: &BusConnection,
    ) -> Result<(FrameConsumer, ReadPosition), String> {
        let (mut consumer, mut position, newest_seq) = self
            .open_within_limit(nats)
            .await
            .map_err(|cause| format!("it needs JetStream (nats-server -js): {cause}"))?;
        while position.seq < newest_seq {
            match tokio::time::timeout(limits::PEER_REQUEST_TIMEOUT, consumer.next_frame()).await {
                Ok(next) => {
                    self.apply_next_frame(nats, &mut position, next?);
                }
                // The last frames expired meanwhile.
                Err(_) => break,
            }
        }
        Ok((consumer, position))
    }

    /// Tries until [`limits::FRAME_STREAM_OPEN_TIMEOUT`]: right after its creation or an election, a server of a NATS cluster
    /// may still answer that there is no such stream.
    async fn open_within_limit(
        &self,
        nats: &BusConnection,
    ) -> Result<(FrameConsumer, ReadPosition, u64), String> {
        let give_up_at = tokio::time::Instant::now() + limits::FRAME_STREAM_OPEN_TIMEOUT;
        loop {
            match self.reopen(nats, None).await {
                Err(cause) if tokio::time::Instant::now() < give_up_at => {
                    tracing::debug!(%cause, "the frame stream could not be opened yet");
                    tokio::time::sleep(limits::FRAME_STREAM_OPEN_RETRY_INTERVAL).await;
                }
                opened => return opened,
            }
        }
    }

    /// Applies the next frame. After a gap in the sequence, the frames between expired before they were read here. False when the
    /// sequence went back: then it is the stream of another epoch.
    fn apply_next_frame(
        &self,
        nats: &BusConnection,
        position: &mut ReadPosition,
        (seq, frame): (u64, SignedFrame),
    ) -> bool {
        if seq <= position.seq {
            return false;
        }
        if let Some(handler) = self.registered_frames.handler() {
            if seq != position.seq + 1 {
                handler.begin_epoch(position.epoch, seq - 1);
            }
            handler.apply_frame(seq, nats.open_frame(&frame).as_deref());
        }
        position.seq = seq;
        true
    }

    /// Continues after the position, or begins anew when the epoch is another or frames after the position have expired.
    async fn reopen(
        &self,
        nats: &BusConnection,
        position: Option<ReadPosition>,
    ) -> Result<(FrameConsumer, ReadPosition, u64), String> {
        let stream = nats.open_frame_stream(crate::random::new_epoch()).await?;
        let resumable = position.filter(|position| {
            position.epoch == stream.epoch
                && position.seq >= stream.floor_seq
                && position.seq <= stream.newest_seq
        });
        let position = resumable.unwrap_or(ReadPosition {
            epoch: stream.epoch,
            seq: stream.floor_seq,
        });
        let consumer = nats.consume_frames(position.seq).await?;
        // Only after the consumer exists: another attempt would report a second gap to sessions.
        if let (None, Some(handler)) = (resumable, self.registered_frames.handler()) {
            handler.begin_epoch(position.epoch, position.seq);
        }
        Ok((consumer, position, stream.newest_seq))
    }

    /// Completes when the epoch is to be checked.
    async fn wait_for_recheck(&self) {
        let _ = tokio::time::timeout(RECHECK_INTERVAL, self.recheck_wakeup.notified()).await;
    }

    /// Whether the epoch is the same and reading advances. `stalled_at` is the position of the last check that found unread
    /// frames: a consumer can be lost with its server.
    async fn is_progressing(&self, position: ReadPosition, stalled_at: &mut Option<u64>) -> bool {
        let Some(nats) = self.client.nats() else {
            return false;
        };
        let previous_stall = stalled_at.take();
        match nats.fetch_stream_state().await {
            Some((epoch, newest_seq)) if epoch == position.epoch && newest_seq > position.seq => {
                *stalled_at = Some(position.seq);
                previous_stall != *stalled_at
            }
            Some((epoch, _)) => epoch == position.epoch,
            None => false,
        }
    }

    /// Follows the stream, and opens it again after a reconnect, an error, or a new epoch.
    pub(super) async fn follow(
        self: Arc<Self>,
        mut consumer: FrameConsumer,
        mut position: ReadPosition,
    ) {
        let Some(nats) = self.client.nats() else {
            return;
        };
        loop {
            self.follow_until_lost(nats, &mut consumer, &mut position)
                .await;
            loop {
                tokio::time::sleep(REOPEN_DELAY).await;
                match self.reopen(nats, Some(position)).await {
                    Ok(reopened) => {
                        (consumer, position, _) = reopened;
                        break;
                    }
                    Err(cause) => {
                        tracing::debug!(cause, "the frames of other hubs cannot be read yet")
                    }
                }
            }
        }
    }

    /// Applies frames until the stream has to be opened again.
    async fn follow_until_lost(
        &self,
        nats: &BusConnection,
        consumer: &mut FrameConsumer,
        position: &mut ReadPosition,
    ) {
        let mut connects = nats.watch_connects();
        connects.mark_unchanged();
        let mut stalled_at = None;
        loop {
            let next = tokio::select! {
                biased;
                _ = connects.changed() => Some(Err("the connection was made anew".into())),
                next = consumer.next_frame() => Some(next),
                () = self.wait_for_recheck() => None,
            };
            match next {
                Some(Ok(next)) if self.apply_next_frame(nats, position, next.clone()) => {}
                None if self.is_progressing(*position, &mut stalled_at).await => {}
                None | Some(_) => return,
            }
        }
    }
}
