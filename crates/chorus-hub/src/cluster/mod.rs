//! Several hubs that share one database: NATS, membership, following the log, replicating frames, synchronising budgets.

mod frame_stream;
mod membership;
mod nats;
mod nats_access;
mod node;
mod protocol;

pub(crate) use nats::RequestError;
pub(crate) use node::ClusterNode;
pub(crate) use protocol::{FrameQuery, SharedSettings};

use crate::identity::rate_limit::RateBudgets;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

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
