//! The session registry: all handles with live sessions or rings on this hub, in shards, so that handles rarely wait for one
//! another.

use super::frame_label::FrameLabel;
use super::handle_sessions::{HandleSessions, JoinRefusal, RingMemory};
use super::session::FrameSession;
use super::stream_position::{self, StreamProgress};
use crate::random;
use crate::store::{AgentId, RowId};
use crate::stream_end::StreamEnd;
use chorus_wire::cursor::{Cursor, ResumePoint};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

const SHARD_COUNT: usize = crate::limits::LOCK_SHARDS;

type SessionShard = HashMap<AgentId, Arc<HandleSessions>>;

/// An entry is created for the first session or frame of a handle, and dropped when no session could resume.
pub(crate) struct SessionRegistry {
    shards: [RwLock<SessionShard>; SHARD_COUNT],
    ring_memory: Arc<RingMemory>,
    pub(super) progress: StreamProgress,
}

impl Default for SessionRegistry {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            ring_memory: Arc::default(),
            progress: StreamProgress::default(),
        }
    }
}

/// A session that was added.
pub(super) struct JoinedSession {
    pub handle_sessions: Arc<HandleSessions>,
    pub session: Arc<FrameSession>,
    /// The cursor at which it starts.
    pub start_cursor: Cursor,
    /// Frames before that may be missing.
    pub has_gap: bool,
}

impl SessionRegistry {
    fn shard_for(&self, principal: AgentId) -> &RwLock<SessionShard> {
        &self.shards[principal.shard_index(SHARD_COUNT)]
    }

    pub(super) fn get(&self, principal: AgentId) -> Option<Arc<HandleSessions>> {
        let shard = self
            .shard_for(principal)
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        shard.get(&principal).cloned()
    }

    fn get_or_create(&self, principal: AgentId, now: Duration) -> Arc<HandleSessions> {
        if let Some(handle_sessions) = self.get(principal) {
            return handle_sessions;
        }
        let create = || {
            let (epoch, floor_seq) = self
                .progress
                .ring_start(principal)
                .unwrap_or_else(|| (random::new_epoch(), 0));
            Arc::new(HandleSessions::new(
                epoch,
                floor_seq,
                now,
                self.ring_memory.clone(),
            ))
        };
        write_shard(self.shard_for(principal))
            .entry(principal)
            .or_insert_with(create)
            .clone()
    }

    /// `None` when the handle has its maximum of streams.
    pub(super) fn join_session(
        &self,
        session: FrameSession,
        resume_point: ResumePoint,
        now: Duration,
    ) -> Option<JoinedSession> {
        let session = Arc::new(session);
        loop {
            let handle_sessions = self.get_or_create(session.principal, now);
            match handle_sessions.add_session(
                &session,
                resume_point,
                self.progress.current_position().seq,
                now,
            ) {
                Ok((start_cursor, has_gap)) => {
                    return Some(JoinedSession {
                        handle_sessions,
                        session,
                        start_cursor,
                        has_gap,
                    });
                }
                Err(JoinRefusal::Full) => return None,
                // It was swept between look-up and join. The sweep removes it from the map under the same lock.
                Err(JoinRefusal::Closed) => {}
            }
        }
    }

    /// Emits to one handle, also without sessions: one that opens a minute later can still resume from before.
    pub(super) fn publish_frame(
        &self,
        principal: AgentId,
        shared_seq: Option<u64>,
        text: &str,
        label: &Arc<FrameLabel>,
        now: Duration,
    ) -> u64 {
        loop {
            if let Some(count) = self
                .get_or_create(principal, now)
                .publish_frame(shared_seq, text, label, now)
            {
                return count;
            }
        }
    }

    /// How many sessions a handle has.
    pub(super) fn session_count(&self, principal: AgentId) -> usize {
        self.get(principal)
            .map_or(0, |handle_sessions| handle_sessions.session_count())
    }

    pub fn end_sessions(&self, principal: AgentId, reason: StreamEnd, now: Duration) {
        let is_unregistered = reason == StreamEnd::Unregistered;
        let mut shard = write_shard(self.shard_for(principal));
        let handle_sessions = if is_unregistered {
            shard.remove(&principal)
        } else {
            shard.get(&principal).cloned()
        };
        drop(shard);
        if let Some(handle_sessions) = handle_sessions {
            handle_sessions.end_sessions(reason, is_unregistered, now);
        }
    }

    pub fn drain_sessions(&self, now: Duration) {
        for shard in &self.shards {
            let handles: Vec<Arc<HandleSessions>> = write_shard(shard).values().cloned().collect();
            handles.iter().for_each(|handle_sessions| {
                handle_sessions.end_sessions(StreamEnd::Shutdown, false, now)
            });
        }
    }

    /// The frame stream begins here, or began a new epoch.
    pub fn reset_frame_stream(&self, epoch: u64, floor_seq: u64) {
        self.progress.reset_to(epoch, floor_seq);
        for shard in &self.shards {
            let handles: Vec<(AgentId, Arc<HandleSessions>)> = write_shard(shard)
                .iter()
                .map(|(id, handle_sessions)| (*id, handle_sessions.clone()))
                .collect();
            handles.iter().for_each(|(principal, handle_sessions)| {
                handle_sessions
                    .reset_ring(stream_position::handle_epoch(epoch, *principal), floor_seq)
            });
        }
    }

    pub fn sweep_expired(&self, now: Duration) {
        for shard in &self.shards {
            let mut shard = write_shard(shard);
            shard.retain(|principal, handle_sessions| {
                let is_expired = handle_sessions.close_if_expired(now);
                if is_expired {
                    self.progress
                        .remember_last_seq(*principal, handle_sessions.newest_seq());
                }
                !is_expired
            });
            shard.shrink_to_fit();
        }
    }
}

fn write_shard(shard: &RwLock<SessionShard>) -> RwLockWriteGuard<'_, SessionShard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::handle_sessions::tests::{label, session};
    use super::*;
    use std::sync::atomic::Ordering;

    const NOW: Duration = Duration::from_secs(1_000);

    fn held(rooms: &SessionRegistry) -> usize {
        rooms.ring_memory.used_bytes.load(Ordering::Relaxed)
    }

    /// R-52, invariant 6
    #[test]
    fn a_room_goes_when_nobody_can_come_back_for_anything() {
        let rooms = SessionRegistry::default();
        rooms.publish_frame(AgentId(1), None, "{}", &label(), NOW);
        let joined = rooms
            .join_session(session("cc-a", ""), ResumePoint::Now, NOW)
            .unwrap();
        assert!(held(&rooms) > 0);
        let later = NOW + Duration::from_secs(301);
        rooms.sweep_expired(later);
        assert!(rooms.get(AgentId(1)).is_some(), "a session is live");
        assert_eq!(held(&rooms), 0, "what is past its time is gone");
        joined
            .handle_sessions
            .remove_session(&joined.session, later);
        rooms.sweep_expired(later + Duration::from_secs(300));
        assert!(
            rooms.get(AgentId(1)).is_some(),
            "a session that left may come back"
        );
        rooms.sweep_expired(later + Duration::from_secs(301));
        assert!(rooms.get(AgentId(1)).is_none());
    }

    #[test]
    fn what_is_said_to_nobody_is_kept_for_who_comes_in_time() {
        let rooms = SessionRegistry::default();
        assert_eq!(
            rooms.publish_frame(AgentId(1), None, "{}", &label(), NOW),
            0
        );
        rooms.sweep_expired(NOW + Duration::from_secs(300));
        let joined = rooms
            .join_session(
                session("cc-a", ""),
                ResumePoint::Unknown,
                NOW + Duration::from_secs(300),
            )
            .unwrap();
        assert_eq!((joined.start_cursor.seq, joined.has_gap), (0, true));
        rooms.sweep_expired(NOW + Duration::from_secs(301));
        assert!(held(&rooms) > 0, "it is about to be taken");
    }

    /// a name that is taken again starts from nothing.
    #[test]
    fn a_gone_principals_frames_go_with_it_and_a_rotated_keys_stay() {
        let rooms = SessionRegistry::default();
        rooms.publish_frame(AgentId(1), None, "{}", &label(), NOW);
        let first = rooms
            .join_session(session("cc-a", ""), ResumePoint::Now, NOW)
            .unwrap();
        rooms.end_sessions(AgentId(1), StreamEnd::KeyRotated, NOW);
        assert_eq!(rooms.session_count(AgentId(1)), 0);
        let again = rooms
            .join_session(
                session("cc-a", ""),
                ResumePoint::After(first.start_cursor),
                NOW,
            )
            .unwrap();
        assert!(!again.has_gap);
        rooms.end_sessions(AgentId(1), StreamEnd::Unregistered, NOW);
        assert_eq!(held(&rooms), 0);
        let other = rooms
            .join_session(
                session("cc-a", ""),
                ResumePoint::After(first.start_cursor),
                NOW,
            )
            .unwrap();
        assert_eq!((other.start_cursor.seq, other.has_gap), (0, true));
    }

    /// Invariant 6
    #[test]
    fn when_all_rings_are_full_the_one_that_grows_gives_up_its_oldest() {
        let held = Arc::new(RingMemory {
            max_bytes: 10_000,
            ..RingMemory::default()
        });
        let rooms = SessionRegistry {
            ring_memory: held.clone(),
            ..SessionRegistry::default()
        };
        let text = "x".repeat(1_000);
        for n in 0..100 {
            rooms.publish_frame(AgentId(n % 3), None, &text, &label(), NOW);
            assert!(held.used_bytes.load(Ordering::Relaxed) <= 10_000);
        }
        drop(rooms);
        assert_eq!(
            held.used_bytes.load(Ordering::Relaxed),
            0,
            "the account is even"
        );
    }
}
