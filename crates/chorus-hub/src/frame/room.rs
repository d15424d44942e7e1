//! The live sessions of one handle and the ring they read from. A stream is nothing but a continuous resumption: publishing
//! appends once and wakes who sleeps, and whoever wakes takes everything after its cursor. There is no queue per stream.

use super::label::Label;
use super::ring::{RETENTION, Ring};
use super::session::Session;
use crate::delivery::Ending;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::limits;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How much a session takes at once: larger writes save nothing.
const CHUNK_BYTES: usize = 64 * 1024;

pub(super) struct Room {
    state: RwLock<State>,
    held: Arc<Held>,
}

/// The bytes of all rings of the hub, and how many they may be.
pub(super) struct Held {
    pub bytes: AtomicUsize,
    pub most: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            most: limits::RINGS_BYTES,
        }
    }
}

struct State {
    ring: Ring,
    sessions: Vec<Arc<Session>>,
    /// When the last session left.
    empty_since: Duration,
    /// No longer anybody's: whoever came for it looks again.
    closed: bool,
}

/// Where a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// With what comes from now on.
    Now,
    After(Cursor),
    /// It brought an id that no hub gave out.
    Unknown,
}

/// Why a session does not get in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shut {
    Closed,
    Full,
}

/// What a session finds when it looks.
#[derive(Debug)]
pub(super) enum Taken {
    Events(Bytes),
    /// Something was let go before the session took it.
    Gap(Cursor),
    Ended(Ending),
}

impl Room {
    pub fn new(epoch: u64, floor: u64, now: Duration, held: Arc<Held>) -> Self {
        let ring = Ring::new(epoch, floor, RETENTION);
        Self {
            state: RwLock::new(State {
                ring,
                sessions: Vec::new(),
                empty_since: now,
                closed: false,
            }),
            held,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the ring and keeps account of what all rings hold.
    fn account<T>(&self, state: &mut State, change: impl FnOnce(&mut Ring) -> T) -> T {
        let before = state.ring.bytes();
        let done = change(&mut state.ring);
        let after = state.ring.bytes();
        self.held
            .bytes
            .fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        done
    }

    /// Lets a session in. It hears what comes from now on, or what came since its cursor; the cursor is where it starts,
    /// and true means that there is a gap before that. Nothing up to `known` is missing here.
    pub fn join(
        &self,
        session: &Arc<Session>,
        since: Resume,
        known: u64,
        now: Duration,
    ) -> Result<(Cursor, bool), Shut> {
        let mut state = self.write();
        if state.closed {
            return Err(Shut::Closed);
        }
        if state.sessions.len() >= limits::STREAMS_PER_HANDLE {
            return Err(Shut::Full);
        }
        let ring = &state.ring;
        let known = match since {
            Resume::Now => Some(ring.newest()),
            Resume::After(cursor) => ring.resume(cursor, known, now),
            Resume::Unknown => None,
        };
        let start = known.unwrap_or_else(|| ring.floor_at(now));
        let cursor = ring.cursor(start);
        session.move_to(start);
        session.stand_at(state.sessions.len());
        state.sessions.push(session.clone());
        Ok((cursor, known.is_none()))
    }

    pub fn leave(&self, session: &Arc<Session>, now: Duration) {
        let mut state = self.write();
        let place = session.place();
        // Only this one: an old connection that closes late takes no other down with it (failure 10).
        if !state
            .sessions
            .get(place)
            .is_some_and(|other| Arc::ptr_eq(other, session))
        {
            return;
        }
        state.sessions.swap_remove(place);
        if let Some(moved) = state.sessions.get(place) {
            moved.stand_at(place);
        }
        if state.sessions.is_empty() {
            state.sessions = Vec::new();
            state.empty_since = now;
        }
    }

    /// Emits a frame; the number of sessions that it is for (FRM-66), or nothing when the room is closed.
    pub fn publish(
        &self,
        place: Option<u64>,
        text: &str,
        label: &Arc<Label>,
        now: Duration,
    ) -> Option<u64> {
        let mut sleepers: Vec<Waker> = Vec::new();
        let mut state = self.write();
        if state.closed {
            return None;
        }
        let before = state.ring.newest();
        self.account(&mut state, |ring| {
            ring.push(place, text, label.clone(), now)
        });
        self.make_room(&mut state);
        let newest = state.ring.newest();
        let (mut count, mut heard) = (0, newest);
        for session in &state.sessions {
            // A session that sleeps has heard everything; one that has not is awake and will look.
            let heard_all = session.cursor() == before;
            if label.admits(session) {
                count += 1;
                if heard_all {
                    sleepers.extend(session.sleeper());
                }
            } else if heard_all {
                // Not for it, so it sleeps on, and what it has no part in is no gap to it later.
                session.move_to(newest);
            }
            heard = heard.min(session.cursor());
        }
        self.account(&mut state, |ring| ring.expire(now, heard));
        drop(state);
        sleepers.into_iter().for_each(Waker::wake);
        Some(count)
    }

    /// Law 6: when all rings together are full, the one that wants more gives up its own oldest frames.
    fn make_room(&self, state: &mut State) {
        let mut over = self
            .held
            .bytes
            .load(Ordering::Relaxed)
            .saturating_sub(self.held.most);
        while over > 0 && state.ring.len() > 1 {
            let before = state.ring.bytes();
            self.account(state, Ring::drop_oldest);
            over = over.saturating_sub(before - state.ring.bytes());
        }
    }

    /// Everything after the session's cursor that is for it, as one piece; asleep until there is something.
    pub fn poll(&self, session: &Session, context: &Context<'_>) -> Poll<Taken> {
        let state = self.read();
        let ending = session.ending.get().copied();
        // A stopping hub still says what it has; a key that is no longer good hears nothing more.
        if let Some(why) = ending.filter(|why| !why.is_gentle()) {
            return Poll::Ready(Taken::Ended(why));
        }
        let ring = &state.ring;
        // Both at once are one gap.
        if session.lost.swap(false, Ordering::Relaxed) || session.cursor() < ring.floor() {
            session.move_to(ring.floor());
            return Poll::Ready(Taken::Gap(ring.cursor(ring.floor())));
        }
        let events = take(ring, session);
        if !events.is_empty() {
            return Poll::Ready(Taken::Events(events));
        }
        if let Some(why) = ending {
            return Poll::Ready(Taken::Ended(why));
        }
        session.sleep(context.waker());
        Poll::Pending
    }

    /// The memory that hubs share was lost: the ring begins anew, and every session is told so.
    pub fn rewind(&self, epoch: u64, floor: u64) {
        let mut state = self.write();
        self.account(&mut state, |ring| ring.rewind(epoch, floor));
        let sessions = state.sessions.clone();
        for session in &sessions {
            session.move_to(floor);
            session.lost.store(true, Ordering::Relaxed);
        }
        drop(state);
        sessions
            .iter()
            .filter_map(|session| session.sleeper())
            .for_each(Waker::wake);
    }

    /// Ends every session; with `clear` nothing is left for anybody.
    pub fn end(&self, why: Ending, clear: bool, now: Duration) {
        let mut state = self.write();
        if clear {
            state.closed = true;
            self.account(&mut state, Ring::clear);
        }
        state.empty_since = now;
        let sessions = std::mem::take(&mut state.sessions);
        for session in &sessions {
            let _ = session.ending.set(why);
        }
        drop(state);
        sessions
            .iter()
            .filter_map(|session| session.sleeper())
            .for_each(Waker::wake);
    }

    /// Whether nobody can come back for anything: then it is closed.
    pub fn expire(&self, now: Duration) -> bool {
        let mut state = self.write();
        let heard = state
            .sessions
            .iter()
            .map(|session| session.cursor())
            .min()
            .unwrap_or(u64::MAX);
        self.account(&mut state, |ring| ring.expire(now, heard));
        let quiet = state.sessions.is_empty() && state.ring.len() == 0;
        let over = quiet && state.empty_since + limits::RING_KEPT < now;
        if over {
            state.closed = true;
        }
        over
    }

    /// The place of the newest frame.
    pub fn newest(&self) -> u64 {
        self.read().ring.newest()
    }

    pub fn len(&self) -> usize {
        self.read().sessions.len()
    }

    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.read().sessions.clone()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.held
            .bytes
            .fetch_sub(state.ring.bytes(), Ordering::Relaxed);
    }
}

/// What a session has not heard yet, up to a chunk. One event is shared as it is; several are put together, so that they
/// go out in one write and nobody counts references for each of them.
fn take(ring: &Ring, session: &Session) -> Bytes {
    let mut one: Option<&Bytes> = None;
    let mut many: Vec<u8> = Vec::new();
    for (seq, entry) in ring.after(session.cursor()) {
        if entry.label.admits(session) {
            match one {
                None => one = Some(&entry.event),
                Some(first) => {
                    if many.is_empty() {
                        let rest = ring.len();
                        many.reserve_exact(
                            first
                                .len()
                                .max(entry.event.len())
                                .saturating_mul(rest)
                                .min(CHUNK_BYTES),
                        );
                        many.extend_from_slice(first);
                    }
                    if many.len() + entry.event.len() > CHUNK_BYTES {
                        break;
                    }
                    many.extend_from_slice(&entry.event);
                }
            }
        }
        session.move_to(seq);
    }
    if many.is_empty() {
        one.cloned().unwrap_or_default()
    } else {
        Bytes::from(many)
    }
}

#[cfg(test)]
pub(super) mod tests;
