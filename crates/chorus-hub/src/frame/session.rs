//! One live session of a handle: its names, its filter, and its cursor.

use crate::identity::CredentialHashes;
use crate::store::AgentId;
use crate::stream_end::StreamEnd;
use chorus_wire::frame::{FrameFilter, ScopeIdent};
use chorus_wire::time::UnixMicros;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;

/// Its state changes under the lock of its [`super::handle_sessions::HandleSessions`]: shared when it reads, exclusive when
/// frames are published or sessions end.
#[derive(Debug)]
pub(super) struct FrameSession {
    pub principal: AgentId,
    pub instrument: ScopeIdent,
    pub session_id: ScopeIdent,
    pub tool: ScopeIdent,
    pub filter: FrameFilter,
    pub opened_at: UnixMicros,
    /// What opened it; it ends with the key and with the console session.
    pub credentials: CredentialHashes,
    pub stream_end: OnceLock<StreamEnd>,
    /// Frames that it had not read were dropped, and it has not got the gap event yet.
    pub has_gap: AtomicBool,
    /// The last sequence that it has read or that was not for it.
    cursor: AtomicU64,
    /// Its index in the list of sessions.
    list_index: AtomicUsize,
    /// Set only while it has read everything.
    waker: Mutex<Option<Waker>>,
}

impl FrameSession {
    pub fn new(
        principal: AgentId,
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
            credentials: CredentialHashes::default(),
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

    /// Taken once per wake-up.
    pub fn take_waker(&self) -> Option<Waker> {
        self.waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
