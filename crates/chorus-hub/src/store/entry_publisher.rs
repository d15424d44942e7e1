//! Who must hear of what is written: the streams of this hub, and the other hubs that share the database.

use super::log::LogEntry;
use futures_util::future::BoxFuture;

/// Who must hear of entries once they are committed.
pub(crate) trait EntryPublisher: Send + Sync {
    /// Whether a live stream of this subject is draining.
    fn has_draining_stream(&self, subject: i64) -> bool;
    /// Tells the live ones, in the order of the log; true when one that is draining took it.
    fn publish_entry(&self, entry: &LogEntry) -> bool;
    /// A commit failed without saying whether it took effect: every live stream reads the log again.
    fn resync_streams(&self);
    /// The other hubs that write to the same database; nothing for a hub that has it alone.
    fn cluster_peers(&self) -> Option<&dyn ClusterPeers> {
        None
    }
}

/// The other hubs that share the database.
pub(crate) trait ClusterPeers: Send + Sync {
    /// Rung when one of them has written.
    fn peer_commit_notify(&self) -> &tokio::sync::Notify;
    /// The streams of this hub have been told everything up to here; `foreign` are those entries of it that it read.
    fn on_log_published(&self, last_seq: i64, peer_entries: &[LogEntry]);
    /// Tells them that this hub wrote up to here. Which of the entries streams of theirs took, within a bounded time; and
    /// they have then forgotten what a notice among them says is over.
    fn announce_commit(&self, last_seq: i64, entries: &[LogEntry]) -> BoxFuture<'static, Vec<i64>>;
}
