//! The live sessions of one handle and the ring they read from. A stream is nothing but a continuous resumption: publishing
//! appends once and wakes who sleeps, and whoever wakes takes everything after its cursor. There is no queue per stream.

use super::frame_label::FrameLabel;
use super::frame_ring::{FrameRing, RING_RETENTION};
use super::session::FrameSession;
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use chorus_wire::cursor::{Cursor, ResumePoint};
use chorus_wire::limits;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How much a session takes at once: larger writes save nothing.
const CHUNK_BYTES: usize = 64 * 1024;

pub(super) struct HandleSessions {
    state: RwLock<SessionsState>,
    ring_memory: Arc<RingMemory>,
}

/// The bytes of all rings of the hub, and how many they may be.
pub(super) struct RingMemory {
    pub used_bytes: AtomicUsize,
    pub max_bytes: usize,
}

impl Default for RingMemory {
    fn default() -> Self {
        Self {
            used_bytes: AtomicUsize::new(0),
            max_bytes: limits::ALL_RINGS_BYTES,
        }
    }
}

struct SessionsState {
    ring: FrameRing,
    sessions: Vec<Arc<FrameSession>>,
    /// When the last session left.
    empty_since: Duration,
    /// No longer anybody's: whoever came for it looks again.
    is_closed: bool,
}

/// Why a session does not get in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JoinRefusal {
    Closed,
    Full,
}

/// What a session finds when it looks.
#[derive(Debug)]
pub(super) enum SessionPoll {
    Events(Bytes),
    /// Something was let go before the session took it.
    Gap(Cursor),
    Ended(StreamEnd),
}

impl HandleSessions {
    pub fn new(epoch: u64, floor_seq: u64, now: Duration, ring_memory: Arc<RingMemory>) -> Self {
        let ring = FrameRing::new(epoch, floor_seq, RING_RETENTION);
        Self {
            state: RwLock::new(SessionsState {
                ring,
                sessions: Vec::new(),
                empty_since: now,
                is_closed: false,
            }),
            ring_memory,
        }
    }

    fn read_state(&self) -> RwLockReadGuard<'_, SessionsState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, SessionsState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the ring and keeps account of what all rings hold.
    fn update_ring<T>(
        &self,
        state: &mut SessionsState,
        change: impl FnOnce(&mut FrameRing) -> T,
    ) -> T {
        let before = state.ring.size_bytes();
        let outcome = change(&mut state.ring);
        let after = state.ring.size_bytes();
        self.ring_memory
            .used_bytes
            .fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        outcome
    }

    /// Lets a session in. It hears what comes from now on, or what came since its cursor; the cursor is where it starts,
    /// and true means that there is a gap before that. Nothing up to `known` is missing here.
    pub fn add_session(
        &self,
        session: &Arc<FrameSession>,
        resume_point: ResumePoint,
        complete_seq: u64,
        now: Duration,
    ) -> Result<(Cursor, bool), JoinRefusal> {
        let mut state = self.write_state();
        if state.is_closed {
            return Err(JoinRefusal::Closed);
        }
        if state.sessions.len() >= limits::STREAMS_PER_HANDLE {
            return Err(JoinRefusal::Full);
        }
        let ring = &state.ring;
        let resume_seq = match resume_point {
            ResumePoint::Now => Some(ring.newest_seq()),
            ResumePoint::After(cursor) => ring.find_resume_seq(cursor, complete_seq, now),
            ResumePoint::Unknown => None,
        };
        let start_seq = resume_seq.unwrap_or_else(|| ring.floor_seq_at(now));
        let cursor = ring.cursor_at(start_seq);
        session.set_cursor(start_seq);
        session.set_list_index(state.sessions.len());
        state.sessions.push(session.clone());
        Ok((cursor, resume_seq.is_none()))
    }

    pub fn remove_session(&self, session: &Arc<FrameSession>, now: Duration) {
        let mut state = self.write_state();
        let index = session.list_index();
        // Only this one: an old connection that closes late takes no other down with it (failure 10).
        if !state
            .sessions
            .get(index)
            .is_some_and(|other| Arc::ptr_eq(other, session))
        {
            return;
        }
        state.sessions.swap_remove(index);
        if let Some(moved) = state.sessions.get(index) {
            moved.set_list_index(index);
        }
        if state.sessions.is_empty() {
            state.sessions = Vec::new();
            state.empty_since = now;
        }
    }

    /// Emits a frame; the number of sessions that it is for (FRM-66), or nothing when the room is closed.
    pub fn publish_frame(
        &self,
        shared_seq: Option<u64>,
        text: &str,
        label: &Arc<FrameLabel>,
        now: Duration,
    ) -> Option<u64> {
        let mut wakers: Vec<Waker> = Vec::new();
        let mut state = self.write_state();
        if state.is_closed {
            return None;
        }
        let before = state.ring.newest_seq();
        self.update_ring(&mut state, |ring| {
            ring.push(shared_seq, text, label.clone(), now)
        });
        self.evict_over_limit(&mut state);
        let newest = state.ring.newest_seq();
        let (mut count, mut consumed_seq) = (0, newest);
        for session in &state.sessions {
            // A session that sleeps has heard everything; one that has not is awake and will look.
            let is_caught_up = session.cursor() == before;
            if label.admits_session(session) {
                count += 1;
                if is_caught_up {
                    wakers.extend(session.take_waker());
                }
            } else if is_caught_up {
                // Not for it, so it sleeps on, and what it has no part in is no gap to it later.
                session.set_cursor(newest);
            }
            consumed_seq = consumed_seq.min(session.cursor());
        }
        self.update_ring(&mut state, |ring| ring.drop_expired(now, consumed_seq));
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Some(count)
    }

    /// Law 6: when all rings together are full, the one that wants more gives up its own oldest frames.
    fn evict_over_limit(&self, state: &mut SessionsState) {
        let mut excess = self
            .ring_memory
            .used_bytes
            .load(Ordering::Relaxed)
            .saturating_sub(self.ring_memory.max_bytes);
        while excess > 0 && state.ring.len() > 1 {
            let before = state.ring.size_bytes();
            self.update_ring(state, FrameRing::drop_oldest);
            excess = excess.saturating_sub(before - state.ring.size_bytes());
        }
    }

    /// Everything after the session's cursor that is for it, as one piece; asleep until there is something.
    pub fn poll_session(&self, session: &FrameSession, context: &Context<'_>) -> Poll<SessionPoll> {
        let state = self.read_state();
        let stream_end = session.stream_end.get().copied();
        // A stopping hub still says what it has; a key that is no longer good hears nothing more.
        if let Some(reason) = stream_end.filter(|reason| !reason.is_graceful()) {
            return Poll::Ready(SessionPoll::Ended(reason));
        }
        let ring = &state.ring;
        // Both at once are one gap.
        if session.has_gap.swap(false, Ordering::Relaxed) || session.cursor() < ring.floor_seq() {
            session.set_cursor(ring.floor_seq());
            return Poll::Ready(SessionPoll::Gap(ring.cursor_at(ring.floor_seq())));
        }
        let events = collect_unread(ring, session);
        if !events.is_empty() {
            return Poll::Ready(SessionPoll::Events(events));
        }
        if let Some(reason) = stream_end {
            return Poll::Ready(SessionPoll::Ended(reason));
        }
        session.register_waker(context.waker());
        Poll::Pending
    }

    /// The memory that hubs share was lost: the ring begins anew, and every session is told so.
    pub fn reset_ring(&self, epoch: u64, floor_seq: u64) {
        let mut state = self.write_state();
        self.update_ring(&mut state, |ring| ring.reset_to(epoch, floor_seq));
        let sessions = state.sessions.clone();
        for session in &sessions {
            session.set_cursor(floor_seq);
            session.has_gap.store(true, Ordering::Relaxed);
        }
        drop(state);
        sessions
            .iter()
            .filter_map(|session| session.take_waker())
            .for_each(Waker::wake);
    }

    /// Ends every session; with `clear` nothing is left for anybody.
    pub fn end_sessions(&self, reason: StreamEnd, clear: bool, now: Duration) {
        let mut state = self.write_state();
        if clear {
            state.is_closed = true;
            self.update_ring(&mut state, FrameRing::clear);
        }
        state.empty_since = now;
        let sessions = std::mem::take(&mut state.sessions);
        for session in &sessions {
            let _ = session.stream_end.set(reason);
        }
        drop(state);
        sessions
            .iter()
            .filter_map(|session| session.take_waker())
            .for_each(Waker::wake);
    }

    /// Whether nobody can come back for anything: then it is closed.
    pub fn close_if_expired(&self, now: Duration) -> bool {
        let mut state = self.write_state();
        let consumed_seq = state
            .sessions
            .iter()
            .map(|session| session.cursor())
            .min()
            .unwrap_or(u64::MAX);
        self.update_ring(&mut state, |ring| ring.drop_expired(now, consumed_seq));
        let is_idle = state.sessions.is_empty() && state.ring.len() == 0;
        let is_expired = is_idle && state.empty_since + limits::RING_RETENTION < now;
        if is_expired {
            state.is_closed = true;
        }
        is_expired
    }

    /// The place of the newest frame.
    pub fn newest_seq(&self) -> u64 {
        self.read_state().ring.newest_seq()
    }

    pub fn session_count(&self) -> usize {
        self.read_state().sessions.len()
    }

    pub fn list_sessions(&self) -> Vec<Arc<FrameSession>> {
        self.read_state().sessions.clone()
    }
}

impl Drop for HandleSessions {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.ring_memory
            .used_bytes
            .fetch_sub(state.ring.size_bytes(), Ordering::Relaxed);
    }
}

/// What a session has not heard yet, up to a chunk. One event is shared as it is; several are put together, so that they
/// go out in one write and nobody counts references for each of them.
fn collect_unread(ring: &FrameRing, session: &FrameSession) -> Bytes {
    let mut first_event: Option<&Bytes> = None;
    let mut chunk: Vec<u8> = Vec::new();
    for (seq, entry) in ring.entries_after(session.cursor()) {
        if entry.label.admits_session(session) {
            match first_event {
                None => first_event = Some(&entry.event),
                Some(first) => {
                    if chunk.is_empty() {
                        let rest = ring.len();
                        chunk.reserve_exact(
                            first
                                .len()
                                .max(entry.event.len())
                                .saturating_mul(rest)
                                .min(CHUNK_BYTES),
                        );
                        chunk.extend_from_slice(first);
                    }
                    if chunk.len() + entry.event.len() > CHUNK_BYTES {
                        break;
                    }
                    chunk.extend_from_slice(&entry.event);
                }
            }
        }
        session.set_cursor(seq);
    }
    if chunk.is_empty() {
        first_event.cloned().unwrap_or_default()
    } else {
        Bytes::from(chunk)
    }
}

#[cfg(test)]
pub(super) mod tests;
