//! Who must hear of what is written: the streams of this hub, and the other hubs that share the database.

use super::log::Entry;
use futures_util::future::BoxFuture;

/// Who must hear of entries once they are committed.
pub(crate) trait Publish: Send + Sync {
    /// Whether a live stream of this subject is draining.
    fn listening(&self, subject: i64) -> bool;
    /// Tells the live ones, in the order of the log; true when one that is draining took it.
    fn publish(&self, entry: &Entry) -> bool;
    /// A commit failed without saying whether it took effect: every live stream reads the log again.
    fn unsure(&self);
    /// The other hubs that write to the same database; nothing for a hub that has it alone.
    fn others(&self) -> Option<&dyn Others> {
        None
    }
}

/// The other hubs that share the database.
pub(crate) trait Others: Send + Sync {
    /// Rung when one of them has written.
    fn grew(&self) -> &tokio::sync::Notify;
    /// The streams of this hub have been told everything up to here; `foreign` are those entries of it that it read.
    fn tailed(&self, upto: i64, foreign: &[Entry]);
    /// Tells them that this hub wrote up to here. Which of the entries streams of theirs took, within a bounded time; and
    /// they have then forgotten what a notice among them says is over.
    fn tell(&self, upto: i64, entries: &[Entry]) -> BoxFuture<'static, Vec<i64>>;
}
