//! The session registry: all handles with live sessions or rings on this hub, in shards, so that handles rarely wait for one
//! another.

use super::frame_label::FrameLabel;
use super::handle_sessions::{HandleSessions, JoinRefusal};
use super::ring_memory::{RingMemory, RingReservation};
use super::session::FrameSession;
use super::shared_frame::{RING_ENTRY_BYTES, SharedFrame};
use super::stream_position::{self, StreamProgress};
use crate::random;
use crate::store::{AgentId, RowId};
use crate::stream_end::StreamEnd;
use chorus_wire::cursor::{Cursor, ResumePoint};
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

const SHARD_COUNT: usize = crate::limits::LOCK_SHARDS;

/// When the rings are full, this part of their memory is freed at once, so that looking for the largest rings is rare.
const EVICTED_FRACTION: usize = 64;
/// The part by which a ring shrinks below the next largest one in one step.
const EVICTION_STEP: usize = 16;

type SessionShard = HashMap<AgentId, Arc<HandleSessions>>;

/// An entry is created for the first session or frame of a handle, and dropped when no session could resume.
pub(crate) struct SessionRegistry {
    shards: [RwLock<SessionShard>; SHARD_COUNT],
    ring_memory: Arc<RingMemory>,
    /// Held while frames are evicted, so that concurrent publishers evict once.
    eviction: Mutex<()>,
    pub(super) progress: StreamProgress,
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
    /// The rings together hold at most so many bytes.
    pub fn with_memory(max_bytes: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            ring_memory: Arc::new(RingMemory::new(max_bytes)),
            eviction: Mutex::default(),
            progress: StreamProgress::default(),
        }
    }

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
            Arc::new(HandleSessions::new(epoch, floor_seq, now))
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

    /// Emits to the handles, also to those without sessions: one that opens a minute later can still resume from before.
    pub(super) fn publish_frame(
        &self,
        targets: &[AgentId],
        shared_seq: Option<u64>,
        text: &str,
        label: &Arc<FrameLabel>,
        now: Duration,
    ) -> u64 {
        let required_bytes = SharedFrame::required_bytes(text) + targets.len() * RING_ENTRY_BYTES;
        let mut reservation = self.reserve_memory(required_bytes);
        if let [target] = targets {
            return self.publish_to(
                *target,
                shared_seq,
                label,
                now,
                &mut reservation,
                |cursor, reservation| {
                    Arc::new(SharedFrame::for_one_ring(
                        cursor,
                        text,
                        label.clone(),
                        now,
                        reservation,
                    ))
                },
            );
        }
        let frame =
            SharedFrame::for_rings(targets.len(), text, label.clone(), now, &mut reservation);
        let frame = Arc::new(frame);
        let publish = |target: &AgentId| {
            self.publish_to(*target, shared_seq, label, now, &mut reservation, |_, _| {
                frame.clone()
            })
        };
        targets.iter().map(publish).sum()
    }

    fn publish_to(
        &self,
        target: AgentId,
        shared_seq: Option<u64>,
        label: &FrameLabel,
        now: Duration,
        reservation: &mut RingReservation,
        build_frame: impl Fn(Cursor, &mut RingReservation) -> Arc<SharedFrame>,
    ) -> u64 {
        loop {
            let handle_sessions = self.get_or_create(target, now);
            if let Some(count) =
                handle_sessions.publish_frame(shared_seq, label, now, reservation, &build_frame)
            {
                return count;
            }
        }
    }

    /// Invariant 6, R-99: when all rings together are full, the largest give up their oldest frames, so that a handle that is sent
    /// much does not cost others what they have been sent.
    fn reserve_memory(&self, bytes: usize) -> RingReservation {
        loop {
            if let Some(reservation) = self.ring_memory.try_reserve(bytes) {
                return reservation;
            }
            let _turn = self.eviction.lock().unwrap_or_else(PoisonError::into_inner);
            self.evict_from_largest(bytes);
        }
    }

    fn evict_from_largest(&self, required_bytes: usize) {
        let max_bytes = self.ring_memory.max_bytes();
        let goal = max_bytes
            .saturating_sub(max_bytes / EVICTED_FRACTION)
            .saturating_sub(required_bytes);
        if self.ring_memory.used_bytes() <= goal {
            return;
        }
        let mut handles: Vec<Arc<HandleSessions>> = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            handles.extend(shard.values().cloned());
        }
        let charge =
            |(index, handle): (usize, &Arc<HandleSessions>)| (handle.charged_bytes(), index);
        let mut by_charge: BinaryHeap<(usize, usize)> =
            handles.iter().enumerate().map(charge).collect();
        while self.ring_memory.used_bytes() > goal {
            let Some((charged, index)) = by_charge.pop().filter(|(charged, _)| *charged > 0) else {
                return;
            };
            let next_charge = by_charge.peek().map_or(0, |(charged, _)| *charged);
            let excess = self.ring_memory.used_bytes() - goal;
            // A little below the next one, so that rings of equal size take turns of more than one frame.
            let target =
                (next_charge - next_charge / EVICTION_STEP).max(charged.saturating_sub(excess));
            by_charge.push((handles[index].evict_frames(target), index));
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

    pub fn end_key_sessions(
        &self,
        principal: AgentId,
        key_hash: &[u8; 32],
        reason: StreamEnd,
        now: Duration,
    ) {
        let found = write_shard(self.shard_for(principal))
            .get(&principal)
            .cloned();
        if let Some(handle_sessions) = found {
            handle_sessions.end_key_sessions(key_hash, reason, now);
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
mod tests;
