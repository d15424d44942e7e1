//! Who must hear of it now: the live streams of each subject. It never carries the only copy of anything durable (law 4).

mod frame_stream;
mod live_streams;
mod membership;
mod nats;
mod nats_access;
mod node;
mod protocol;

pub(crate) use live_streams::LiveStreams;
pub(crate) use nats::RequestError;
pub(crate) use node::ClusterNode;
pub(crate) use protocol::{BudgetClaim, BudgetDecision, FrameQuery, SharedSettings};

use crate::delivery::StreamQueue;
use crate::identity::rate_limit::RateBudgets;
use crate::store::EntryPublisher;
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Whose entries a stream hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamTopic {
    /// What this subject hears.
    Subject(i64),
    /// What happens on the hub: for operators.
    Activity,
    /// What is said in this room, to those in it. A member's id is a subject of its own on which nothing is ever said: the
    /// stream listens there too, so that what ends the member's streams ends it.
    Channel(i64),
}

/// Tells the live ones. Publishing never waits: a queue takes an entry at once or its stream reads it from the log.
pub(crate) trait StreamBus: EntryPublisher {
    /// From here on the queue is offered every entry of the topic; `None` when the topic has as many streams as it may
    /// have. The place is that of the newest entry published before.
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<i64>;
    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>);
    /// Whether the subject has an open stream (TRN-60).
    fn is_online(&self, subject: i64) -> bool;
    /// Open streams of subjects.
    fn stream_count(&self) -> usize;
    /// Ends every stream of the subject: its key was rotated, or it is gone.
    fn end_streams(&self, subject: i64, reason: StreamEnd);
    /// Ends every stream and refuses new ones.
    fn drain_streams(&self);
    fn is_draining(&self) -> bool;

    /// Streams or sessions of the subject came or went here: other hubs will know.
    fn mark_presence_changed(&self, _subject: i64) {}
    /// Over when the other hubs know what changed up to now, or do not answer.
    fn wait_presence_synced(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
    /// Whether what this hub remembers of the database is true: nobody else writes, or it has just looked.
    fn is_caught_up(&self) -> bool {
        true
    }
}

/// What the bus needs of the hub it belongs to.
pub(crate) trait HubCallbacks: Send + Sync {
    /// What this notice of a write, made here or elsewhere, says is no longer true.
    fn invalidate_caches(&self, invalidation: &str);
    /// An agent was heard at another hub so long ago, or refused a job there.
    fn record_agent_seen(&self, agent: i64, ago: Option<Duration>);
    /// The hub's own clock of waits.
    fn monotonic_now(&self) -> Duration;
    /// Streams here took these messages, which their senders call queued.
    fn mark_delivered(&self, seqs: Vec<i64>);
    /// The same, as a hub that was there before remembers it.
    fn restore_agent_seen(&self, agent: i64, ago: Option<Duration>);
    /// Agents after this one that this hub has heard, and how many microseconds ago; below zero for one that refused a job.
    fn list_agents_seen(&self, after: i64, limit: usize) -> Vec<(i64, i64)>;
    fn session_count(&self, principal: i64) -> u32;
    fn shared_settings(&self) -> SharedSettings;
    /// What callers of this hub have left; nothing when it is closing.
    fn rate_budgets(&self) -> Option<Arc<RateBudgets>>;
    fn answer_frame_query(&self, query: FrameQuery) -> BoxFuture<'_, Bytes>;
    /// The memory that all hubs share of the last frames begins at this place, or was lost and begins anew.
    fn reset_frame_stream(&self, epoch: u64, floor: u64);
    /// The next frame in it.
    fn apply_frame(&self, seq: u64, payload: &[u8]);
}
