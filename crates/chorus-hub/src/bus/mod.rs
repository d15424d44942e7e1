//! Who must hear of it now: the live streams of each subject. It never carries the only copy of anything durable (law 4).

mod local;

pub(crate) use local::Local;

use crate::delivery::{Ending, Queue};
use crate::store::Publish;
use std::sync::Arc;

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
}
