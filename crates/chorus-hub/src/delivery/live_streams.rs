//! Live streams: the open streams of each subject, and the registry of those on this hub.

use super::{StreamQueue, render};
use crate::seal::SealKey;
use crate::store::{EndedKey, EntryPublisher, LogEntry, LogSeq, RowId, SubjectId};
use crate::stream_end::StreamEnd;
use chorus_wire::{limits, reach::StreamReach};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Which entries a stream receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamTopic {
    /// The entries of this subject.
    Subject(SubjectId),
    /// Activity of the hub: for operators.
    Activity,
    /// The entries of this channel. A member id is a subject without entries: a channel stream subscribes to its member's as
    /// well, so that what ends the member's streams ends it.
    Channel(SubjectId),
}

/// The open streams of this hub, and whether peers have some. It never carries the only copy of durable data (invariant 4).
/// Publishing does not wait: a queue takes an entry at once, or its stream reads it from the log.
pub(crate) trait LiveStreams: EntryPublisher {
    /// From here on the queue is offered every entry of the topic; `None` when the topic has its maximum of streams. Returns the
    /// sequence of the newest entry published before.
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<LogSeq>;
    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>);
    /// Whether the subject has an open stream at any hub (TRN-60).
    fn is_online(&self, subject: SubjectId) -> bool;
    /// What the readers of the subject's streams do with a message, at any hub; `None` without a stream.
    fn find_reach(&self, subject: SubjectId) -> Option<StreamReach>;
    /// Open streams of subjects at all hubs.
    fn stream_count(&self) -> usize;
    /// Ends every stream of the subject on this hub: its key was rotated, or it is unregistered.
    fn end_streams(&self, subject: SubjectId, reason: StreamEnd);
    /// Ends the streams of the subject on this hub that this key or console session opened.
    fn end_key_streams(&self, subject: SubjectId, key_hash: &[u8; 32], reason: StreamEnd);
    /// Ends the streams of any subject on this hub that this console session of an operator opened.
    fn end_operator_streams(&self, session_hash: &[u8; 32], reason: StreamEnd);
    /// Ends every stream and refuses new ones.
    fn drain_streams(&self);
    fn is_draining(&self) -> bool;

    /// Streams or sessions of the subject were opened or closed here: peers will be told.
    fn mark_presence_changed(&self, _subject: SubjectId) {}
    /// Completes when peers know every change so far, or do not answer in time.
    fn wait_presence_synced(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// Ends the streams on this hub that a key or console session opened.
pub(crate) fn end_streams_of_key(streams: &dyn LiveStreams, ended: &EndedKey) {
    for subject in &ended.subjects {
        streams.end_key_streams(*subject, &ended.hash, StreamEnd::KeyRotated);
    }
    if ended.is_of_operator() {
        streams.end_operator_streams(&ended.hash, StreamEnd::KeyRotated);
    }
}

const SHARD_COUNT: usize = crate::limits::LOCK_SHARDS;

type StreamShard = HashMap<SubjectId, Vec<Arc<StreamQueue>>>;

/// The registry of the streams of this hub.
pub(crate) struct LocalStreams {
    shards: [Mutex<StreamShard>; SHARD_COUNT],
    activity_queues: Mutex<Vec<Arc<StreamQueue>>>,
    stream_count: AtomicUsize,
    newest_seq: AtomicI64,
    draining: AtomicBool,
    /// The salt of this database's trace ids.
    trace_salt: AtomicI64,
    /// Unseals the credentials of channel deliveries (D-105).
    seal_key: OnceLock<Arc<SealKey>>,
}

impl LocalStreams {
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            activity_queues: Mutex::default(),
            stream_count: AtomicUsize::new(0),
            newest_seq: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            trace_salt: AtomicI64::new(0),
            seal_key: OnceLock::new(),
        }
    }

    /// What is known once the store is open: its salt, the sequence of its newest entry, and the key for what it has sealed.
    pub fn init_from_store(&self, salt: u32, newest_seq: LogSeq, seal_key: Arc<SealKey>) {
        let _ = self.seal_key.set(seal_key);
        self.trace_salt.store(salt.into(), Ordering::Relaxed);
        self.newest_seq.store(newest_seq.0, Ordering::SeqCst);
    }

    fn lock_shard(&self, subject: SubjectId) -> MutexGuard<'_, StreamShard> {
        self.shards[subject.shard_index(SHARD_COUNT)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_activity_queues(&self) -> MutexGuard<'_, Vec<Arc<StreamQueue>>> {
        self.activity_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn for_each_queue(&self, mut action: impl FnMut(&Arc<StreamQueue>)) {
        for shard in &self.shards {
            shard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values()
                .flatten()
                .for_each(&mut action);
        }
        self.lock_activity_queues().iter().for_each(action);
    }
}

impl EntryPublisher for LocalStreams {
    fn has_draining_stream(&self, subject: SubjectId) -> bool {
        self.lock_shard(subject)
            .get(&subject)
            .is_some_and(|queues| queues.iter().any(|queue| queue.is_draining()))
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        let salt = self.trace_salt.load(Ordering::Relaxed) as u32;
        let shard = self.lock_shard(entry.subject);
        let accepted = match (shard.get(&entry.subject), self.seal_key.get()) {
            (Some(queues), Some(seal_key)) => {
                // Serialised once and shared by all streams (invariant 11).
                let event = render::render_event(entry, salt, seal_key);
                queues.iter().fold(false, |taken, queue| {
                    queue.offer_event(entry.seq, &event) | taken
                })
            }
            (Some(_) | None, Some(_) | None) => false,
        };
        drop(shard);
        let activity_queues = self.lock_activity_queues();
        if !activity_queues.is_empty()
            && let Some(event) = render::render_activity_events(entry, salt, 0)
        {
            for queue in activity_queues.iter() {
                queue.offer_event(entry.seq, &event);
            }
        }
        self.newest_seq.fetch_max(entry.seq.0, Ordering::SeqCst);
        accepted
    }

    fn resync_streams(&self) {
        self.for_each_queue(|queue| queue.mark_overflowed());
    }
}

impl LiveStreams for LocalStreams {
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<LogSeq> {
        // Read before the queue is registered: an entry between the two is older than this stream, and in the log.
        let newest_seq = self.newest_seq.load(Ordering::SeqCst);
        match topic {
            StreamTopic::Subject(subject) => {
                let mut shard = self.lock_shard(subject);
                let queues = shard.entry(subject).or_default();
                if queues.len() >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                queues.push(queue);
                self.stream_count.fetch_add(1, Ordering::Relaxed);
                metrics::gauge!("chorus_inbox_streams").increment(1);
            }
            StreamTopic::Channel(channel) => {
                let mut shard = self.lock_shard(channel);
                let queues = shard.entry(channel).or_default();
                if queues.len() >= limits::STREAMS_PER_CHANNEL {
                    return None;
                }
                queues.push(queue);
            }
            StreamTopic::Activity => {
                let mut activity_queues = self.lock_activity_queues();
                if activity_queues.len() >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                activity_queues.push(queue);
            }
        }
        Some(LogSeq(newest_seq))
    }

    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>) {
        match topic {
            StreamTopic::Subject(subject) | StreamTopic::Channel(subject) => {
                let mut shard = self.lock_shard(subject);
                let Some(queues) = shard.get_mut(&subject) else {
                    return;
                };
                // Only this queue: an old connection that closes late must not remove a newer one (failure 10).
                let before = queues.len();
                queues.retain(|other| !Arc::ptr_eq(other, queue));
                if topic == StreamTopic::Subject(subject) {
                    let closed_count = before - queues.len();
                    self.stream_count.fetch_sub(closed_count, Ordering::Relaxed);
                    metrics::gauge!("chorus_inbox_streams").decrement(closed_count as f64);
                }
                if queues.is_empty() {
                    shard.remove(&subject);
                }
            }
            StreamTopic::Activity => self
                .lock_activity_queues()
                .retain(|other| !Arc::ptr_eq(other, queue)),
        }
    }

    fn is_online(&self, subject: SubjectId) -> bool {
        self.lock_shard(subject).contains_key(&subject)
    }

    fn find_reach(&self, subject: SubjectId) -> Option<StreamReach> {
        let shard = self.lock_shard(subject);
        shard.get(&subject)?.iter().map(|queue| queue.reach()).max()
    }

    fn stream_count(&self) -> usize {
        self.stream_count.load(Ordering::Relaxed)
    }

    fn end_streams(&self, subject: SubjectId, reason: StreamEnd) {
        self.lock_shard(subject)
            .get(&subject)
            .into_iter()
            .flatten()
            .for_each(|queue| queue.end_stream(reason));
    }

    fn end_key_streams(&self, subject: SubjectId, key_hash: &[u8; 32], reason: StreamEnd) {
        self.lock_shard(subject)
            .get(&subject)
            .into_iter()
            .flatten()
            .filter(|queue| queue.is_opened_by(key_hash))
            .for_each(|queue| queue.end_stream(reason));
    }

    fn end_operator_streams(&self, session_hash: &[u8; 32], reason: StreamEnd) {
        self.for_each_queue(|queue| {
            if queue.is_opened_by(session_hash) {
                queue.end_stream(reason);
            }
        });
    }

    fn drain_streams(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.for_each_queue(|queue| queue.end_stream(StreamEnd::Shutdown));
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }
}
