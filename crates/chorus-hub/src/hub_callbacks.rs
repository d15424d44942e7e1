//! What the cluster needs of this hub: cache invalidation, presence, settings and frames.

use crate::cluster::{FrameQuery, HubCallbacks, SharedSettings};
use crate::frame::{self, WeakFrames};
use crate::identity::rate_limit::RateBudgets;
use crate::store::{CacheInvalidation, messages};
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// A reference to the hub that does not keep it open.
pub(crate) struct WeakHub(pub WeakFrames);

impl HubCallbacks for WeakHub {
    fn invalidate_caches(&self, invalidation_json: &str) {
        let Some(frames) = self.0.upgrade() else {
            return;
        };
        let hub = frames.context();
        let Some(invalidation) = CacheInvalidation::parse(invalidation_json) else {
            // Only a newer hub knows this form: any cached entry may be invalid.
            hub.identity().key_cache().clear();
            return frames.clear_caches();
        };
        hub.identity().key_cache().invalidate(&invalidation);
        frames.apply_invalidation(&invalidation);
        for (subject, reason) in &invalidation.ended {
            // A reason that only a newer hub knows ends the stream as well; the client learns more when it reconnects.
            let reason = StreamEnd::parse(reason).unwrap_or(StreamEnd::Unavailable);
            hub.live_streams().end_streams(*subject, reason);
            frames.end_streams(*subject, reason);
        }
    }

    fn record_agent_seen(&self, agent: i64, ago: Option<Duration>) {
        let Some(frames) = self.0.upgrade() else {
            return;
        };
        let hub = frames.context();
        match ago {
            Some(ago) => hub
                .identity()
                .presence()
                .record_seen_elsewhere(agent, hub.clock().monotonic_now().saturating_sub(ago)),
            None => hub.identity().presence().record_refusal(agent),
        }
    }

    fn restore_agent_seen(&self, agent: i64, ago: Option<Duration>) {
        let Some(frames) = self.0.upgrade() else {
            return;
        };
        let hub = frames.context();
        match ago {
            Some(ago) => hub
                .identity()
                .presence()
                .record_seen_elsewhere(agent, hub.clock().monotonic_now().saturating_sub(ago)),
            None => hub.identity().presence().record_earlier_refusal(agent),
        }
    }

    fn list_agents_seen(&self, after: i64, limit: usize) -> Vec<(i64, i64)> {
        let Some(frames) = self.0.upgrade() else {
            return Vec::new();
        };
        let hub = frames.context();
        hub.identity()
            .presence()
            .list_seen(after, limit, hub.clock().monotonic_now())
    }

    fn monotonic_now(&self) -> Duration {
        let frames = self.0.upgrade();
        frames.map_or_else(Duration::default, |frames| {
            frames.context().clock().monotonic_now()
        })
    }

    fn mark_delivered(&self, seqs: Vec<i64>) {
        let Some(frames) = self.0.upgrade() else {
            return;
        };
        tokio::spawn(async move {
            let marked = frames
                .context()
                .store()
                .write(async move |txn| Ok(messages::mark_messages_delivered(txn, &seqs).await?))
                .await;
            if let Err(error) = marked {
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }

    fn session_count(&self, principal: i64) -> u32 {
        let frames = self.0.upgrade();
        frames.map_or(0, |frames| frames.session_count(principal) as u32)
    }

    fn shared_settings(&self) -> SharedSettings {
        let Some(frames) = self.0.upgrade() else {
            return SharedSettings::default();
        };
        let hub = frames.context();
        SharedSettings {
            host_name: hub.options().host_name.clone(),
            seal: hub.seal_key().fingerprint(),
        }
    }

    fn rate_budgets(&self) -> Option<Arc<RateBudgets>> {
        let frames = self.0.upgrade();
        frames.map(|frames| frames.context().identity().shared_budgets())
    }

    fn answer_frame_query(&self, query: FrameQuery) -> BoxFuture<'_, Bytes> {
        async move {
            match self.0.upgrade() {
                Some(frames) => frame::answer_frame_query(&frames, query).await,
                None => Bytes::new(),
            }
        }
        .boxed()
    }

    fn reset_frame_stream(&self, epoch: u64, floor: u64) {
        if let Some(frames) = self.0.upgrade() {
            frames.reset_frame_stream(epoch, floor);
        }
    }

    fn apply_frame(&self, seq: u64, payload: &[u8]) {
        if let Some(frames) = self.0.upgrade() {
            frame::apply_frame_message(&frames, seq, payload);
        }
    }
}
