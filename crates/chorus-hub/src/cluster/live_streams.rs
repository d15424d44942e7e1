//! The bus of a hub that is alone: subscriptions in this process, in shards, so that subjects rarely wait for one another.

use super::{StreamBus, StreamTopic};
use crate::delivery::{StreamQueue, render};
use crate::store::{EntryPublisher, LogEntry};
use crate::stream_end::StreamEnd;
use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SHARD_COUNT: usize = 64;

type StreamShard = HashMap<i64, Vec<Arc<StreamQueue>>>;

pub(crate) struct LiveStreams {
    shards: [Mutex<StreamShard>; SHARD_COUNT],
    activity_queues: Mutex<Vec<Arc<StreamQueue>>>,
    stream_count: AtomicUsize,
    newest_seq: AtomicI64,
    draining: AtomicBool,
    /// What this database puts in its trace ids.
    trace_salt: AtomicI64,
}

impl LiveStreams {
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            activity_queues: Mutex::default(),
            stream_count: AtomicUsize::new(0),
            newest_seq: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            trace_salt: AtomicI64::new(0),
        }
    }

    /// What is known once the store is open: its salt, and the place of its newest entry.
    pub fn init_from_store(&self, salt: u32, newest_seq: i64) {
        self.trace_salt.store(salt.into(), Ordering::Relaxed);
        self.newest_seq.store(newest_seq, Ordering::SeqCst);
    }

    fn lock_shard(&self, subject: i64) -> MutexGuard<'_, StreamShard> {
        let shard_index = subject.unsigned_abs() as usize % SHARD_COUNT;
        self.shards[shard_index]
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

impl EntryPublisher for LiveStreams {
    fn has_draining_stream(&self, subject: i64) -> bool {
        self.lock_shard(subject)
            .get(&subject)
            .is_some_and(|queues| queues.iter().any(|queue| queue.is_draining()))
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        let salt = self.trace_salt.load(Ordering::Relaxed) as u32;
        let accepted = match self.lock_shard(entry.subject).get(&entry.subject) {
            Some(queues) => {
                // Serialised once, shared by every stream it goes to (law 11).
                let event = render::render_event(entry, salt);
                queues.iter().fold(false, |taken, queue| {
                    queue.offer_event(entry.seq, &event) | taken
                })
            }
            None => false,
        };
        let activity_queues = self.lock_activity_queues();
        if !activity_queues.is_empty()
            && let Some(event) = render::render_activity_events(entry, salt, 0)
        {
            for queue in activity_queues.iter() {
                queue.offer_event(entry.seq, &event);
            }
        }
        self.newest_seq.fetch_max(entry.seq, Ordering::SeqCst);
        accepted
    }

    fn resync_streams(&self) {
        self.for_each_queue(|queue| queue.mark_overflowed());
    }
}

impl StreamBus for LiveStreams {
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<i64> {
        // Read before the queue is there: an entry between the two is older than this stream, and still in the log.
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
        Some(newest_seq)
    }

    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>) {
        match topic {
            StreamTopic::Subject(subject) | StreamTopic::Channel(subject) => {
                let mut shard = self.lock_shard(subject);
                let Some(queues) = shard.get_mut(&subject) else {
                    return;
                };
                // Only this one: an old connection that closes late takes no other down with it (failure 10).
                let before = queues.len();
                queues.retain(|other| !Arc::ptr_eq(other, queue));
                if topic == StreamTopic::Subject(subject) {
                    self.stream_count
                        .fetch_sub(before - queues.len(), Ordering::Relaxed);
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

    fn is_online(&self, subject: i64) -> bool {
        self.lock_shard(subject).contains_key(&subject)
    }

    fn stream_count(&self) -> usize {
        self.stream_count.load(Ordering::Relaxed)
    }

    fn end_streams(&self, subject: i64, reason: StreamEnd) {
        self.lock_shard(subject)
            .get(&subject)
            .into_iter()
            .flatten()
            .for_each(|queue| queue.end_stream(reason));
    }

    fn drain_streams(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.for_each_queue(|queue| queue.end_stream(StreamEnd::Shutdown));
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }
}
