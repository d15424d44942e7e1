//! What the bus needs of this hub: how it forgets, hears and answers what other hubs say.

use crate::Hub;
use crate::cluster::{FrameQuery, HubCallbacks, SharedSettings};
use crate::frame;
use crate::identity::rate_limit::RateBudgets;
use crate::store::{CacheInvalidation, messages};
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// A hold on the hub that does not keep it open.
pub(crate) struct WeakHub<F>(pub F);

impl<F: Fn() -> Option<Hub> + Send + Sync> HubCallbacks for WeakHub<F> {
    fn invalidate_caches(&self, invalidation_json: &str) {
        let Some(hub) = (self.0)() else { return };
        let Some(invalidation) = CacheInvalidation::parse(invalidation_json) else {
            // A newer hub says something that this one does not understand: then nothing it remembers is sure.
            hub.identity().key_cache().clear();
            return hub.frames().clear_caches();
        };
        hub.identity().key_cache().invalidate(&invalidation);
        hub.frames().apply_invalidation(&invalidation);
        for (subject, reason) in &invalidation.ended {
            // Whatever a newer hub ends it for, it ends; the reader comes back and learns more.
            hub.end_streams(
                *subject,
                StreamEnd::parse(reason).unwrap_or(StreamEnd::Unavailable),
            );
        }
    }

    fn record_agent_seen(&self, agent: i64, ago: Option<Duration>) {
        let Some(hub) = (self.0)() else { return };
        match ago {
            Some(ago) => hub
                .identity()
                .presence()
                .record_seen_elsewhere(agent, hub.clock().monotonic_now().saturating_sub(ago)),
            None => hub.identity().presence().record_refusal(agent),
        }
    }

    fn restore_agent_seen(&self, agent: i64, ago: Option<Duration>) {
        let Some(hub) = (self.0)() else { return };
        match ago {
            Some(ago) => hub
                .identity()
                .presence()
                .record_seen_elsewhere(agent, hub.clock().monotonic_now().saturating_sub(ago)),
            None => hub.identity().presence().record_earlier_refusal(agent),
        }
    }

    fn list_agents_seen(&self, after: i64, limit: usize) -> Vec<(i64, i64)> {
        let Some(hub) = (self.0)() else {
            return Vec::new();
        };
        hub.identity()
            .presence()
            .list_seen(after, limit, hub.clock().monotonic_now())
    }

    fn monotonic_now(&self) -> Duration {
        (self.0)()
            .map(|hub| hub.clock().monotonic_now())
            .unwrap_or_default()
    }

    fn mark_delivered(&self, seqs: Vec<i64>) {
        let Some(hub) = (self.0)() else { return };
        tokio::spawn(async move {
            let marked = hub
                .store()
                .write(async move |txn| Ok(messages::mark_messages_delivered(txn, &seqs).await?))
                .await;
            if let Err(error) = marked {
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }

    fn session_count(&self, principal: i64) -> u32 {
        (self.0)().map_or(0, |hub| hub.frames().session_count(principal) as u32)
    }

    fn shared_settings(&self) -> SharedSettings {
        let Some(hub) = (self.0)() else {
            return SharedSettings::default();
        };
        SharedSettings {
            host_name: hub.options().host_name.clone(),
            seal: hub.seal_key().fingerprint(),
        }
    }

    fn rate_budgets(&self) -> Option<Arc<RateBudgets>> {
        (self.0)().map(|hub| hub.identity().shared_budgets())
    }

    fn answer_frame_query(&self, query: FrameQuery) -> BoxFuture<'_, Bytes> {
        async move {
            match (self.0)() {
                Some(hub) => frame::answer_frame_query(&hub, query).await,
                None => Bytes::new(),
            }
        }
        .boxed()
    }

    fn reset_frame_stream(&self, epoch: u64, floor: u64) {
        if let Some(hub) = (self.0)() {
            hub.frames().reset_frame_stream(epoch, floor);
        }
    }

    fn apply_frame(&self, seq: u64, payload: &[u8]) {
        if let Some(hub) = (self.0)() {
            frame::apply_frame_message(&hub, seq, payload);
        }
    }
}
