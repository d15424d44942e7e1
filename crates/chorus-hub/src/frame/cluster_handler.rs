//! What the frame protocol does for the cluster: it applies replicated frames and answers the queries of peers.

use super::{WeakFrames, replicate};
use crate::cluster::{FrameHandler, FrameQuery};
use crate::store::{AgentId, CacheInvalidation};
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// Weak, because the frame protocol holds the cluster.
impl FrameHandler for WeakFrames {
    fn begin_epoch(&self, epoch: u64, floor_seq: u64) {
        if let Some(frames) = self.upgrade() {
            frames.registry().reset_frame_stream(epoch, floor_seq);
        }
    }

    fn apply_frame(&self, seq: u64, payload: Option<&[u8]>) {
        if let Some(frames) = self.upgrade() {
            replicate::apply_frame_message(&frames, seq, payload);
        }
    }

    fn answer_query(&self, query: FrameQuery) -> BoxFuture<'_, Bytes> {
        async move {
            match self.upgrade() {
                Some(frames) => replicate::answer_frame_query(&frames, query).await,
                None => Bytes::new(),
            }
        }
        .boxed()
    }

    fn session_count(&self, principal: AgentId) -> u32 {
        let frames = self.upgrade();
        frames.map_or(0, |frames| {
            frames.registry().session_count(principal) as u32
        })
    }

    fn apply_invalidation(&self, invalidation: Option<&CacheInvalidation>) {
        let Some(frames) = self.upgrade() else {
            return;
        };
        let Some(invalidation) = invalidation else {
            return frames.addressing_cache().clear_all();
        };
        frames.addressing_cache().apply_invalidation(invalidation);
        for (subject, reason) in invalidation.ended_streams() {
            frames.end_streams(subject.as_agent(), reason);
        }
        for ended in &invalidation.ended_keys {
            for subject in &ended.subjects {
                frames.end_key_streams(subject.as_agent(), &ended.hash, StreamEnd::KeyRotated);
            }
        }
    }
}
