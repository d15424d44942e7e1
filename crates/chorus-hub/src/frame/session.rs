//! One live session of a handle: who it says it is, what it wants to hear, and how far it has heard.

use crate::stream_end::StreamEnd;
use chorus_wire::frame::{FrameFilter, ScopeIdent};
use chorus_wire::time::UnixMicros;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;

/// Its state changes under the lock of its room: shared by itself, exclusive by those who publish or end.
#[derive(Debug)]
pub(super) struct FrameSession {
    pub principal: i64,
    pub instrument: ScopeIdent,
    pub session_id: ScopeIdent,
    pub tool: ScopeIdent,
    pub filter: FrameFilter,
    pub opened_at: UnixMicros,
    pub stream_end: OnceLock<StreamEnd>,
    /// What it was about to be given is gone, and it has not been told yet.
    pub has_gap: AtomicBool,
    /// The last place in the ring that it has been given or has no part in.
    cursor: AtomicU64,
    /// Where it stands in its room's list.
    list_index: AtomicUsize,
    /// Set only while it has heard everything.
    waker: Mutex<Option<Waker>>,
}

impl FrameSession {
    pub fn new(
        principal: i64,
        [instrument, session_id, tool]: [ScopeIdent; 3],
        filter: FrameFilter,
        opened_at: UnixMicros,
    ) -> Self {
        Self {
            principal,
            instrument,
            session_id,
            tool,
            filter,
            opened_at,
            stream_end: OnceLock::new(),
            has_gap: AtomicBool::new(false),
            cursor: AtomicU64::new(0),
            list_index: AtomicUsize::new(usize::MAX),
            waker: Mutex::new(None),
        }
    }

    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    pub fn set_cursor(&self, seq: u64) {
        self.cursor.store(seq, Ordering::Relaxed);
    }

    pub fn list_index(&self) -> usize {
        self.list_index.load(Ordering::Relaxed)
    }

    pub fn set_list_index(&self, index: usize) {
        self.list_index.store(index, Ordering::Relaxed);
    }

    pub fn register_waker(&self, waker: &Waker) {
        let mut registered = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !registered
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            *registered = Some(waker.clone());
        }
    }

    /// Whom to wake, once.
    pub fn take_waker(&self) -> Option<Waker> {
        self.waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
