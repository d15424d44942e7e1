//! The interface by which the writer publishes committed entries to the streams of this hub and to its peers.

use super::log::LogEntry;
use super::{LogSeq, SubjectId};
use futures_util::future::BoxFuture;

/// Receives every entry after its commit.
pub(crate) trait EntryPublisher: Send + Sync {
    /// Whether a live stream of this subject is draining.
    fn has_draining_stream(&self, subject: SubjectId) -> bool;
    /// Publishes an entry to the live streams; called in log order. True when a draining stream took it.
    fn publish_entry(&self, entry: &LogEntry) -> bool;
    /// Makes every live stream read the log again, because a commit failed with an unknown outcome.
    fn resync_streams(&self);
    /// The other hubs that write to the same database; `None` for a hub that has the database alone.
    fn cluster_peers(&self) -> Option<&dyn ClusterPeers> {
        None
    }
}

/// The other hubs of the cluster, which share the database.
pub(crate) trait ClusterPeers: Send + Sync {
    /// Notified when a peer has committed.
    fn peer_commit_notify(&self) -> &tokio::sync::Notify;
    /// Whether the log was read recently enough that caches of the database are valid (D-81).
    fn is_caught_up(&self) -> bool;
    /// Called when the streams of this hub have been given all entries up to `last_seq`. `peer_entries` are those of them that
    /// other hubs wrote.
    fn on_log_published(&self, last_seq: LogSeq, peer_entries: &[LogEntry]);
    /// Announces to the peers that this hub committed up to `last_seq`. Returns, within a bounded time, the sequences of the
    /// entries that draining streams of peers took. By then the peers have also applied the cache invalidations among them.
    fn announce_commit(
        &self,
        last_seq: LogSeq,
        entries: &[LogEntry],
    ) -> BoxFuture<'static, Vec<LogSeq>>;
}
