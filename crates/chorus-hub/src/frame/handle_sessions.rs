//! The live sessions of one handle and their ring. A stream is a cursor into the ring: publishing appends once and wakes the
//! waiting sessions, and each reads everything after its cursor. There is no queue per stream.

use super::frame_label::FrameLabel;
use super::frame_ring::{FrameRing, RING_RETENTION};
use super::ring_memory::RingReservation;
use super::session::FrameSession;
use super::shared_frame::{EventBatch, SharedFrame};
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use chorus_wire::cursor::{Cursor, ResumePoint};
use chorus_wire::limits;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(super) struct HandleSessions {
    state: RwLock<SessionsState>,
    /// [`FrameRing::charged_bytes`], to be read without the lock.
    charged_bytes: AtomicUsize,
}

struct SessionsState {
    ring: FrameRing,
    sessions: Vec<Arc<FrameSession>>,
    /// When the last session closed.
    empty_since: Duration,
    /// It was removed from the registry: a caller that still holds it looks it up again.
    is_closed: bool,
}

/// Why a session cannot be added.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JoinRefusal {
    Closed,
    Full,
}

/// What a session reads.
#[derive(Debug)]
pub(super) enum SessionPoll {
    Events(Vec<Bytes>),
    /// Frames were dropped before the session read them.
    Gap(Cursor),
    Ended(StreamEnd),
}

impl HandleSessions {
    pub fn new(epoch: u64, floor_seq: u64, now: Duration) -> Self {
        let ring = FrameRing::new(epoch, floor_seq, RING_RETENTION);
        Self {
            state: RwLock::new(SessionsState {
                ring,
                sessions: Vec::new(),
                empty_since: now,
                is_closed: false,
            }),
            charged_bytes: AtomicUsize::new(0),
        }
    }

    fn read_state(&self) -> RwLockReadGuard<'_, SessionsState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, SessionsState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the ring and publishes its charge.
    fn update_ring<T>(
        &self,
        state: &mut SessionsState,
        change: impl FnOnce(&mut FrameRing) -> T,
    ) -> T {
        let outcome = change(&mut state.ring);
        self.charged_bytes
            .store(state.ring.charged_bytes(), Ordering::Relaxed);
        outcome
    }

    /// The memory that the ring is charged for.
    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    /// Adds a session, which reads from now on or since its cursor. Returns the cursor at which it starts, and true when there
    /// is a gap before that. No frame up to `complete_seq` is missing here.
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
        // Only this session: an old connection that closes late must not remove a newer one (failure 10).
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

    /// Appends a frame. Returns the number of sessions that it is for (FRM-66); `None` when this is closed.
    pub fn publish_frame(
        &self,
        shared_seq: Option<u64>,
        label: &FrameLabel,
        now: Duration,
        reservation: &mut RingReservation,
        build_frame: impl FnOnce(Cursor, &mut RingReservation) -> Arc<SharedFrame>,
    ) -> Option<u64> {
        let mut wakers: Vec<Waker> = Vec::new();
        let mut state = self.write_state();
        if state.is_closed {
            return None;
        }
        let before = state.ring.newest_seq();
        self.update_ring(&mut state, |ring| {
            ring.push(shared_seq, reservation, build_frame)
        });
        let newest = state.ring.newest_seq();
        let mut count = 0;
        let mut consumed_seq = newest;
        for session in &state.sessions {
            // A waiting session has read everything; one that has not is awake and will read.
            let is_caught_up = session.cursor() == before;
            if label.admits_session(session) {
                count += 1;
                if is_caught_up {
                    wakers.extend(session.take_waker());
                }
            } else if is_caught_up {
                // Not for it: it keeps waiting, and a frame that is not for it is no gap later.
                session.set_cursor(newest);
            }
            consumed_seq = consumed_seq.min(session.cursor());
        }
        self.update_ring(&mut state, |ring| ring.drop_expired(now, consumed_seq));
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Some(count)
    }

    /// Drops the oldest frames until the ring is charged for no more than `max_bytes`, and at least one. A session that had not
    /// read them gets a gap event. Returns the charge.
    pub fn evict_frames(&self, max_bytes: usize) -> usize {
        let mut state = self.write_state();
        self.update_ring(&mut state, |ring| {
            while ring.drop_oldest() && ring.charged_bytes() > max_bytes {}
            ring.charged_bytes()
        })
    }

    /// All frames after the session's cursor that are for it, as one chunk; pending until there is one.
    pub fn poll_session(&self, session: &FrameSession, context: &Context<'_>) -> Poll<SessionPoll> {
        let state = self.read_state();
        let stream_end = session.stream_end.get().copied();
        // On shutdown the session still gets what the ring has; after a revoked key it gets nothing more.
        if let Some(reason) = stream_end.filter(|reason| !reason.is_graceful()) {
            return Poll::Ready(SessionPoll::Ended(reason));
        }
        let ring = &state.ring;
        // Both reasons at once are one gap.
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

    /// The frame stream began a new epoch: so does the ring, and every session gets a gap event.
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

    /// Ends the sessions that this key or console session opened.
    pub fn end_key_sessions(&self, key_hash: &[u8; 32], reason: StreamEnd, now: Duration) {
        let sessions: Vec<Arc<FrameSession>> = self
            .write_state()
            .sessions
            .iter()
            .filter(|session| session.credentials.contains(key_hash))
            .cloned()
            .collect();
        for session in sessions {
            let _ = session.stream_end.set(reason);
            self.remove_session(&session, now);
            session.take_waker().into_iter().for_each(Waker::wake);
        }
    }

    /// Ends every session; with `clear` the frames are dropped too.
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

    /// Closes this when no session is open and none could resume. Returns whether it is closed.
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

    /// The sequence of the newest frame.
    pub fn newest_seq(&self) -> u64 {
        self.read_state().ring.newest_seq()
    }

    pub fn session_count(&self) -> usize {
        self.read_state().sessions.len()
    }

    #[cfg(test)]
    pub fn list_frames(&self) -> Vec<Arc<SharedFrame>> {
        let state = self.read_state();
        let entries = state.ring.entries_after(0);
        entries.map(|(_, entry)| entry.frame.clone()).collect()
    }

    pub fn list_sessions(&self) -> Vec<Arc<FrameSession>> {
        self.read_state().sessions.clone()
    }
}

/// The unread frames of a session, up to a chunk.
fn collect_unread(ring: &FrameRing, session: &FrameSession) -> Vec<Bytes> {
    let unread = ring.entries_after(session.cursor());
    let mut batch = EventBatch::new(unread.size_hint().0);
    for (seq, entry) in unread {
        let frame = &entry.frame;
        if frame.label.admits_session(session) && !batch.push(frame, ring.cursor_at(seq)) {
            break;
        }
        session.set_cursor(seq);
    }
    batch.into_parts()
}

#[cfg(test)]
pub(super) mod tests;
