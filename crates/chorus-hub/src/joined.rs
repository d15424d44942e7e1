//! What the bus needs of this hub: how it forgets, hears and answers what other hubs say.

use crate::Hub;
use crate::bus::{Alike, Behind, Question};
use crate::delivery::Ending;
use crate::frame;
use crate::identity::budget::Budgets;
use crate::store::{Notice, messages};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// A hold on the hub that does not keep it open.
pub(crate) struct Joined<F>(pub F);

impl<F: Fn() -> Option<Hub> + Send + Sync> Behind for Joined<F> {
    fn forget(&self, notice: &str) {
        let Some(hub) = (self.0)() else { return };
        let Some(notice) = Notice::parse(notice) else {
            // A newer hub says something that this one does not understand: then nothing it remembers is sure.
            hub.keyring().forget_all();
            return hub.frames().forget_all();
        };
        hub.keyring().heed(&notice);
        hub.frames().heed(&notice);
        for (subject, why) in &notice.ended {
            // Whatever a newer hub ends it for, it ends; the reader comes back and learns more.
            hub.end_streams(*subject, Ending::parse(why).unwrap_or(Ending::Unavailable));
        }
    }

    fn heard(&self, agent: i64, ago: Option<Duration>) {
        let Some(hub) = (self.0)() else { return };
        match ago {
            Some(ago) => hub
                .liveness()
                .beat_elsewhere(agent, hub.clock().steady().saturating_sub(ago)),
            None => hub.liveness().refused(agent),
        }
    }

    fn heard_before(&self, agent: i64, ago: Option<Duration>) {
        let Some(hub) = (self.0)() else { return };
        match ago {
            Some(ago) => hub
                .liveness()
                .beat_elsewhere(agent, hub.clock().steady().saturating_sub(ago)),
            None => hub.liveness().refused_before(agent),
        }
    }

    fn all_heard(&self, after: i64, most: usize) -> Vec<(i64, i64)> {
        let Some(hub) = (self.0)() else {
            return Vec::new();
        };
        hub.liveness().all(after, most, hub.clock().steady())
    }

    fn steady(&self) -> Duration {
        (self.0)()
            .map(|hub| hub.clock().steady())
            .unwrap_or_default()
    }

    fn delivered(&self, seqs: Vec<i64>) {
        let Some(hub) = (self.0)() else { return };
        tokio::spawn(async move {
            let marked = hub
                .store()
                .write(async move |txn| Ok(messages::caught_up(txn, &seqs).await?))
                .await;
            if let Err(error) = marked {
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }

    fn sessions_of(&self, principal: i64) -> u32 {
        (self.0)().map_or(0, |hub| hub.frames().sessions_of(principal) as u32)
    }

    fn alike(&self) -> Alike {
        let Some(hub) = (self.0)() else {
            return Alike::default();
        };
        Alike {
            host_name: hub.options().host_name.clone(),
            seal: hub.seal().mark(),
        }
    }

    fn budgets(&self) -> Option<Arc<Budgets>> {
        (self.0)().map(|hub| hub.budgets().clone())
    }

    fn answer(&self, question: Question) -> BoxFuture<'_, Bytes> {
        async move {
            match (self.0)() {
                Some(hub) => frame::answer(&hub, question).await,
                None => Bytes::new(),
            }
        }
        .boxed()
    }

    fn begin(&self, epoch: u64, floor: u64) {
        if let Some(hub) = (self.0)() {
            hub.frames().begin(epoch, floor);
        }
    }

    fn frame(&self, place: u64, payload: &[u8]) {
        if let Some(hub) = (self.0)() {
            frame::take(&hub, place, payload);
        }
    }
}
