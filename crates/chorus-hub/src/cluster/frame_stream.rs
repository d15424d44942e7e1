//! The last minutes of frames as all hubs have them: in the memory of the bus, in one order, read by each hub (D-82).

use super::ClusterNode;
use super::nats::{FrameConsumer, NatsConnection, RequestError};
use bytes::Bytes;
use chorus_wire::limits;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How soon it is tried again.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// How often it is asked whether the memory is still the same: it can be deleted, or be lost with one server of several, while
/// the connection holds; and whoever waits for the next frame of a memory that is no more waits for ever.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How far a hub has read, in which life of the memory.
#[derive(Clone, Copy, Debug)]
struct ReadPosition {
    epoch: u64,
    seq: u64,
}

impl ClusterNode {
    /// Puts something where every hub will read it: its place.
    pub async fn publish_frame(&self, payload: Bytes) -> Result<u64, RequestError> {
        let published = self
            .nats()
            .ok_or(RequestError::Timeout)?
            .publish_frame(payload)
            .await;
        if published.is_err() {
            self.recheck_frame_stream();
        }
        published
    }

    /// It may not be the memory that is read here any more: that is looked at now.
    pub fn recheck_frame_stream(&self) {
        self.recheck_wakeup.notify_one();
    }

    /// Opens the memory, so that a bus without one is known at start, and reads what is in it: a session that comes now hears
    /// what comes from now on, and nothing older.
    pub(super) async fn start_frame_consumer(
        &self,
        nats: &Arc<NatsConnection>,
    ) -> Result<(), String> {
        let (mut consumer, mut position, newest_seq) =
            self.reopen_frame_stream(nats, None)
                .await
                .map_err(|cause| format!("it needs JetStream (nats-server -js): {cause}"))?;
        while position.seq < newest_seq {
            match tokio::time::timeout(limits::PEER_REQUEST_TIMEOUT, consumer.next_frame()).await {
                Ok(next) => {
                    self.apply_next_frame(&mut position, next?);
                }
                // The last of it was let go meanwhile.
                Err(_) => break,
            }
        }
        self.spawn_task(Self::follow_frames, (consumer, position));
        Ok(())
    }

    /// The next frame. One that does not follow the last says that those between were let go before they were read here; and
    /// false that it is another memory, which begins again with smaller places.
    fn apply_next_frame(&self, position: &mut ReadPosition, (seq, payload): (u64, Bytes)) -> bool {
        if seq <= position.seq {
            return false;
        }
        if let Some(callbacks) = self.hub_callbacks() {
            if seq != position.seq + 1 {
                callbacks.reset_frame_stream(position.epoch, seq - 1);
            }
            callbacks.apply_frame(seq, &payload);
        }
        position.seq = seq;
        true
    }

    /// What is to be read next. A memory that is another one, or that has lost what was not read yet, begins anew.
    async fn reopen_frame_stream(
        &self,
        nats: &NatsConnection,
        position: Option<ReadPosition>,
    ) -> Result<(FrameConsumer, ReadPosition, u64), String> {
        let stream = nats.open_frame_stream(crate::clock::new_epoch()).await?;
        let resumable = position.filter(|position| {
            position.epoch == stream.epoch
                && position.seq >= stream.floor_seq
                && position.seq <= stream.newest_seq
        });
        let position = resumable.unwrap_or(ReadPosition {
            epoch: stream.epoch,
            seq: stream.floor_seq,
        });
        let consumer = stream.consume_after(position.seq).await?;
        // Only now: whoever has to try again would tell another gap.
        if let (None, Some(callbacks)) = (resumable, self.hub_callbacks()) {
            callbacks.reset_frame_stream(position.epoch, position.seq);
        }
        Ok((consumer, position, stream.newest_seq))
    }

    /// Over when it is time to ask whether the memory is still the same, or somebody doubts it.
    async fn wait_for_recheck(weak_node: &Weak<ClusterNode>) {
        let recheck_requested = async {
            match weak_node.upgrade() {
                Some(node) => node.recheck_wakeup.notified().await,
                None => std::future::pending().await,
            }
        };
        let _ = tokio::time::timeout(RECHECK_INTERVAL, recheck_requested).await;
    }

    /// Whether the memory is still the one that is read, and read on. `stuck` is where reading stood at the last look, when
    /// there was more: a server that is lost may take the place in it along.
    async fn is_stream_progressing(
        &self,
        position: ReadPosition,
        stalled_at: &mut Option<u64>,
    ) -> bool {
        let Some(nats) = self.nats() else {
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

    async fn follow_frames(
        weak_node: Weak<ClusterNode>,
        (mut consumer, mut position): (FrameConsumer, ReadPosition),
    ) {
        loop {
            let Some(nats) = weak_node.upgrade().and_then(|node| node.nats().cloned()) else {
                return;
            };
            let mut connects = nats.watch_connects();
            connects.mark_unchanged();
            drop(nats);
            let mut stalled_at = None;
            loop {
                let next = tokio::select! {
                    next = consumer.next_frame() => Some(next),
                    _ = connects.changed() => Some(Err("the connection was made anew".into())),
                    () = Self::wait_for_recheck(&weak_node) => None,
                };
                let Some(node) = weak_node.upgrade() else {
                    return;
                };
                match next {
                    Some(Ok(next)) if node.apply_next_frame(&mut position, next.clone()) => {}
                    None if node.is_stream_progressing(position, &mut stalled_at).await => {}
                    None | Some(_) => break,
                }
            }
            loop {
                tokio::time::sleep(REOPEN_DELAY).await;
                let Some(node) = weak_node.upgrade() else {
                    return;
                };
                let Some(nats) = node.nats().cloned() else {
                    return;
                };
                match node.reopen_frame_stream(&nats, Some(position)).await {
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
}
