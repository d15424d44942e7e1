//! One live session of a handle: who it says it is, what it wants to hear, and how far it has heard.

use crate::delivery::Ending;
use chorus_wire::frame::{Filter, Ident};
use chorus_wire::time::Micros;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;

/// Its state changes under the lock of its room: shared by itself, exclusive by those who publish or end.
#[derive(Debug)]
pub(super) struct Session {
    pub principal: i64,
    pub instrument: Ident,
    pub session: Ident,
    pub tool: Ident,
    pub filter: Filter,
    pub since: Micros,
    pub ending: OnceLock<Ending>,
    /// What it was about to be given is gone, and it has not been told yet.
    pub lost: AtomicBool,
    /// The last place in the ring that it has been given or has no part in.
    cursor: AtomicU64,
    /// Where it stands in its room's list.
    place: AtomicUsize,
    /// Set only while it has heard everything.
    sleeper: Mutex<Option<Waker>>,
}

impl Session {
    pub fn new(
        principal: i64,
        [instrument, session, tool]: [Ident; 3],
        filter: Filter,
        since: Micros,
    ) -> Self {
        Self {
            principal,
            instrument,
            session,
            tool,
            filter,
            since,
            ending: OnceLock::new(),
            lost: AtomicBool::new(false),
            cursor: AtomicU64::new(0),
            place: AtomicUsize::new(usize::MAX),
            sleeper: Mutex::new(None),
        }
    }

    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    pub fn move_to(&self, seq: u64) {
        self.cursor.store(seq, Ordering::Relaxed);
    }

    pub fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    pub fn stand_at(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }

    pub fn sleep(&self, waker: &Waker) {
        let mut sleeper = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner);
        if !sleeper.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *sleeper = Some(waker.clone());
        }
    }

    /// Whom to wake, once.
    pub fn sleeper(&self) -> Option<Waker> {
        self.sleeper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
