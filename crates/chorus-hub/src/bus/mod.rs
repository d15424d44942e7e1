//! Who must hear of it now: the live streams of each subject. It never carries the only copy of anything durable (law 4).

mod access;
mod local;
mod mesh;
mod nats;
mod peers;
mod reel;
mod words;

pub use access::BusFiles;
pub(crate) use local::Local;
pub(crate) use mesh::Mesh;
pub(crate) use nats::Silence;
pub(crate) use words::{Alike, Question, Spend, Verdict};

use crate::delivery::{Ending, Queue};
use crate::identity::budget::Budgets;
use crate::store::Publish;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Whose entries a stream hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// What this subject hears.
    Subject(i64),
    /// What happens on the hub: for operators.
    Activity,
    /// What is said in this room, to those in it. A member's id is a subject of its own on which nothing is ever said: the
    /// stream listens there too, so that what ends the member's streams ends it.
    Room(i64),
}

/// Tells the live ones. Publishing never waits: a queue takes an entry at once or its stream reads it from the log.
pub(crate) trait Bus: Publish {
    /// From here on the queue is offered every entry of the topic; `None` when the topic has as many streams as it may
    /// have. The place is that of the newest entry published before.
    fn subscribe(&self, topic: Topic, queue: Arc<Queue>) -> Option<i64>;
    fn unsubscribe(&self, topic: Topic, queue: &Arc<Queue>);
    /// Whether the subject has an open stream (TRN-60).
    fn online(&self, subject: i64) -> bool;
    /// Open streams of subjects.
    fn streams(&self) -> usize;
    /// Ends every stream of the subject: its key was rotated, or it is gone.
    fn end(&self, subject: i64, why: Ending);
    /// Ends every stream and refuses new ones.
    fn drain(&self);
    fn draining(&self) -> bool;

    /// Streams or sessions of the subject came or went here: other hubs will know.
    fn changed(&self, _subject: i64) {}
    /// Over when the other hubs know what changed up to now, or do not answer.
    fn told(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
    /// Whether what this hub remembers of the database is true: nobody else writes, or it has just looked.
    fn is_current(&self) -> bool {
        true
    }
}

/// What the bus needs of the hub it belongs to.
pub(crate) trait Behind: Send + Sync {
    /// What this notice of a write, made here or elsewhere, says is no longer true.
    fn forget(&self, notice: &str);
    /// An agent was heard at another hub so long ago, or refused a job there.
    fn heard(&self, agent: i64, ago: Option<Duration>);
    /// The hub's own clock of waits.
    fn steady(&self) -> Duration;
    /// Streams here took these messages, which their senders call queued.
    fn delivered(&self, seqs: Vec<i64>);
    /// The same, as a hub that was there before remembers it.
    fn heard_before(&self, agent: i64, ago: Option<Duration>);
    /// Agents after this one that this hub has heard, and how many microseconds ago; below zero for one that refused a job.
    fn all_heard(&self, after: i64, most: usize) -> Vec<(i64, i64)>;
    fn sessions_of(&self, principal: i64) -> u32;
    fn alike(&self) -> Alike;
    /// What callers of this hub have left; nothing when it is closing.
    fn budgets(&self) -> Option<Arc<Budgets>>;
    fn answer(&self, question: Question) -> BoxFuture<'_, Bytes>;
    /// The memory that all hubs share of the last frames begins at this place, or was lost and begins anew.
    fn begin(&self, epoch: u64, floor: u64);
    /// The next frame in it.
    fn frame(&self, place: u64, payload: &[u8]);
}
