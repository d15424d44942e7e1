//! Recent submissions of each sender: a repeated `frame_id` gets the first answer and is emitted once.

use crate::store::{AgentId, RowId};
use chorus_wire::frame::FrameError;
use chorus_wire::limits;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

const SHARD_COUNT: usize = crate::limits::LOCK_SHARDS;

/// The counts of a recent frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SubmissionCount {
    /// The sessions of this hub that it was for.
    pub local_count: u64,
    /// The count that this hub answered to the sender, if it did.
    pub reported_count: Option<u64>,
}

/// The answers to one sender's frames, kept as long and as many as a ring keeps.
#[derive(Default)]
struct SenderSubmissions {
    counts: HashMap<Uuid, SubmissionCount>,
    order: VecDeque<(Duration, Uuid)>,
}

impl SenderSubmissions {
    fn drop_expired(&mut self, now: Duration) {
        while let Some((at, id)) = self.order.front() {
            if at.saturating_add(limits::RING_RETENTION) >= now
                && self.order.len() <= limits::RING_FRAMES
            {
                break;
            }
            self.counts.remove(id);
            self.order.pop_front();
        }
    }
}

type SubmissionShard = HashMap<AgentId, Arc<Mutex<SenderSubmissions>>>;

pub(crate) struct RecentSubmissions([Mutex<SubmissionShard>; SHARD_COUNT]);

impl Default for RecentSubmissions {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecentSubmissions {
    /// Emits the frame unless its id was emitted before. Other submissions of the sender wait meanwhile, so that concurrent ones
    /// find its answer and its frames have the same order in every ring. A refusal is not recorded: the id stays free.
    pub fn emit_once(
        &self,
        sender: AgentId,
        id: Uuid,
        now: Duration,
        emit: impl FnOnce() -> Result<u64, FrameError>,
    ) -> Result<u64, FrameError> {
        let shard = &self.0[sender.shard_index(SHARD_COUNT)];
        let submissions = lock_mutex(shard).entry(sender).or_default().clone();
        let mut submissions = lock_mutex(&submissions);
        submissions.drop_expired(now);
        if let Some(count) = submissions.counts.get(&id) {
            return Ok(count.local_count);
        }
        let count = emit()?;
        submissions.counts.insert(
            id,
            SubmissionCount {
                local_count: count,
                reported_count: None,
            },
        );
        submissions.order.push_back((now, id));
        Ok(count)
    }

    /// The counts of a frame, if it was emitted recently.
    pub(super) fn find_count(
        &self,
        sender: AgentId,
        id: Uuid,
        now: Duration,
    ) -> Option<SubmissionCount> {
        let shard = &self.0[sender.shard_index(SHARD_COUNT)];
        let submissions = lock_mutex(shard).get(&sender).cloned()?;
        let mut submissions = lock_mutex(&submissions);
        submissions.drop_expired(now);
        submissions.counts.get(&id).copied()
    }

    /// The sender gets this count of all hubs, and the same count if it repeats the id.
    pub(super) fn record_reported_count(&self, sender: AgentId, id: Uuid, count: u64) {
        let shard = &self.0[sender.shard_index(SHARD_COUNT)];
        let Some(submissions) = lock_mutex(shard).get(&sender).cloned() else {
            return;
        };
        if let Some(count_entry) = lock_mutex(&submissions).counts.get_mut(&id) {
            count_entry.reported_count = Some(count);
        }
    }

    pub fn sweep_expired(&self, now: Duration) {
        for shard in &self.0 {
            // A reference is only cloned under this lock, so one with a count of 1 is not in use.
            lock_mutex(shard).retain(|_, submissions| {
                Arc::strong_count(submissions) > 1 || {
                    let mut submissions = lock_mutex(submissions);
                    submissions.drop_expired(now);
                    !submissions.order.is_empty()
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::frame::FrameCode;

    const NOW: Duration = Duration::from_secs(1_000);

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    ///
    #[test]
    fn a_repeated_id_is_answered_as_the_first_time_and_emitted_once() {
        let senders = RecentSubmissions::default();
        assert_eq!(senders.emit_once(AgentId(1), id(1), NOW, || Ok(7)), Ok(7));
        assert_eq!(
            senders.emit_once(AgentId(1), id(1), NOW + limits::RING_RETENTION, || panic!(
                "emitted twice"
            )),
            Ok(7)
        );
        assert_eq!(
            senders.emit_once(AgentId(2), id(1), NOW, || Ok(3)),
            Ok(3),
            "another sender's id is another id"
        );
        let later = NOW + limits::RING_RETENTION + Duration::from_micros(1);
        assert_eq!(senders.emit_once(AgentId(1), id(1), later, || Ok(9)), Ok(9));
    }

    ///
    #[test]
    fn after_a_refusal_the_id_is_free() {
        let senders = RecentSubmissions::default();
        let refusal: FrameError = FrameCode::ExpansionTooLarge.into();
        assert_eq!(
            senders.emit_once(AgentId(1), id(1), NOW, || Err(refusal.clone())),
            Err(refusal.clone())
        );
        assert_eq!(senders.emit_once(AgentId(1), id(1), NOW, || Ok(1)), Ok(1));
    }

    #[test]
    fn racing_submissions_of_one_id_are_emitted_once() {
        let (senders, emitted) = (
            RecentSubmissions::default(),
            std::sync::atomic::AtomicU64::new(0),
        );
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..500 {
                        let emit = || Ok(emitted.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
                        senders.emit_once(AgentId(1), id(n), NOW, emit).unwrap();
                    }
                });
            }
        });
        assert_eq!(emitted.into_inner(), 500);
    }

    /// Invariant 6
    #[test]
    fn a_sender_is_remembered_up_to_the_bound_and_forgotten_when_its_time_is_over() {
        let senders = RecentSubmissions::default();
        for n in 0..limits::RING_FRAMES as u128 + 10 {
            senders.emit_once(AgentId(1), id(n), NOW, || Ok(0)).unwrap();
        }
        let kept = lock_mutex(&lock_mutex(&senders.0[1])[&AgentId(1)])
            .counts
            .len();
        assert!(
            (limits::RING_FRAMES..=limits::RING_FRAMES + 1).contains(&kept),
            "{kept}"
        );
        senders.sweep_expired(NOW + limits::RING_RETENTION + Duration::from_secs(1));
        assert!(lock_mutex(&senders.0[1]).is_empty());
    }
}
