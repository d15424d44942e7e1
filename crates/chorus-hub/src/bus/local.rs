//! The bus of a hub that is alone: subscriptions in this process, in shards, so that subjects rarely wait for one another.

use super::{Bus, Topic};
use crate::delivery::{Ending, Queue, render};
use crate::store::{Entry, Publish};
use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;

type Shard = HashMap<i64, Vec<Arc<Queue>>>;

pub(crate) struct Local {
    shards: [Mutex<Shard>; SHARDS],
    operators: Mutex<Vec<Arc<Queue>>>,
    streams: AtomicUsize,
    newest: AtomicI64,
    draining: AtomicBool,
    /// What this database puts in its trace ids.
    salt: AtomicI64,
}

impl Local {
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            operators: Mutex::default(),
            streams: AtomicUsize::new(0),
            newest: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            salt: AtomicI64::new(0),
        }
    }

    /// What is known once the store is open: its salt, and the place of its newest entry.
    pub fn opened(&self, salt: u32, newest: i64) {
        self.salt.store(salt.into(), Ordering::Relaxed);
        self.newest.store(newest, Ordering::SeqCst);
    }

    fn shard(&self, subject: i64) -> MutexGuard<'_, Shard> {
        let place = subject.unsigned_abs() as usize % SHARDS;
        self.shards[place]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn operators(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        self.operators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self, mut act: impl FnMut(&Arc<Queue>)) {
        for shard in &self.shards {
            shard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values()
                .flatten()
                .for_each(&mut act);
        }
        self.operators().iter().for_each(act);
    }
}

impl Publish for Local {
    fn listening(&self, subject: i64) -> bool {
        self.shard(subject)
            .get(&subject)
            .is_some_and(|queues| queues.iter().any(|queue| queue.is_draining()))
    }

    fn publish(&self, entry: &Entry) -> bool {
        let salt = self.salt.load(Ordering::Relaxed) as u32;
        let accepted = match self.shard(entry.subject).get(&entry.subject) {
            Some(queues) => {
                // Serialised once, shared by every stream it goes to (law 11).
                let event = render::event(entry, salt);
                queues
                    .iter()
                    .fold(false, |taken, queue| queue.offer(entry.seq, &event) | taken)
            }
            None => false,
        };
        let operators = self.operators();
        if !operators.is_empty()
            && let Some(event) = render::activity_event(entry, salt, 0)
        {
            for queue in operators.iter() {
                queue.offer(entry.seq, &event);
            }
        }
        self.newest.fetch_max(entry.seq, Ordering::SeqCst);
        accepted
    }

    fn unsure(&self) {
        self.each(|queue| queue.fall_behind());
    }
}

impl Bus for Local {
    fn subscribe(&self, topic: Topic, queue: Arc<Queue>) -> Option<i64> {
        // Read before the queue is there: an entry between the two is older than this stream, and still in the log.
        let newest = self.newest.load(Ordering::SeqCst);
        match topic {
            Topic::Subject(subject) => {
                let mut shard = self.shard(subject);
                let queues = shard.entry(subject).or_default();
                if queues.len() >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                queues.push(queue);
                self.streams.fetch_add(1, Ordering::Relaxed);
            }
            Topic::Room(room) => {
                let mut shard = self.shard(room);
                let queues = shard.entry(room).or_default();
                if queues.len() >= limits::STREAMS_PER_ROOM {
                    return None;
                }
                queues.push(queue);
            }
            Topic::Activity => {
                let mut operators = self.operators();
                if operators.len() >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                operators.push(queue);
            }
        }
        Some(newest)
    }

    fn unsubscribe(&self, topic: Topic, queue: &Arc<Queue>) {
        match topic {
            Topic::Subject(subject) | Topic::Room(subject) => {
                let mut shard = self.shard(subject);
                let Some(queues) = shard.get_mut(&subject) else {
                    return;
                };
                // Only this one: an old connection that closes late takes no other down with it (failure 10).
                let before = queues.len();
                queues.retain(|other| !Arc::ptr_eq(other, queue));
                if topic == Topic::Subject(subject) {
                    self.streams
                        .fetch_sub(before - queues.len(), Ordering::Relaxed);
                }
                if queues.is_empty() {
                    shard.remove(&subject);
                }
            }
            Topic::Activity => self.operators().retain(|other| !Arc::ptr_eq(other, queue)),
        }
    }

    fn online(&self, subject: i64) -> bool {
        self.shard(subject).contains_key(&subject)
    }

    fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    fn end(&self, subject: i64, why: Ending) {
        self.shard(subject)
            .get(&subject)
            .into_iter()
            .flatten()
            .for_each(|queue| queue.end(why));
    }

    fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.each(|queue| queue.end(Ending::Shutdown));
    }

    fn draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }
}
