//! The stream queue: a bounded buffer between the writer and one stream. When it is full, or the stream is not draining, it takes
//! no more events and the feed continues from the log.

use crate::identity::CredentialHashes;
use crate::store::LogSeq;
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use chorus_wire::{limits, reach::StreamReach};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::time::Instant;

/// What a feed reads from its queue.
#[derive(Debug)]
pub(super) enum QueueRead {
    Events(VecDeque<(LogSeq, Bytes)>),
    /// The queue refused events: the feed reads them from the log.
    Overflowed,
    Ended(StreamEnd),
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<(LogSeq, Bytes)>,
    bytes: usize,
    overflowed: bool,
    blocked_since: Option<Instant>,
    end: Option<StreamEnd>,
    waker: Option<Waker>,
}

pub(crate) struct StreamQueue {
    state: Mutex<QueueState>,
    /// What opened the stream.
    credentials: CredentialHashes,
    /// What its reader does with a message.
    reach: StreamReach,
}

impl QueueState {
    fn is_stalled(&self) -> bool {
        self.blocked_since
            .is_some_and(|since| since.elapsed() >= limits::STREAM_STALLED_AFTER)
    }

    fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }
}

impl StreamQueue {
    pub fn new(credentials: CredentialHashes, reach: StreamReach) -> Self {
        Self {
            state: Mutex::default(),
            credentials,
            reach,
        }
    }

    pub fn reach(&self) -> StreamReach {
        self.reach
    }

    /// Whether the key or console session with this hash opened it.
    pub fn is_opened_by(&self, hash: &[u8; 32]) -> bool {
        self.credentials.contains(hash)
    }

    fn lock_state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event that is offered now would be a delivery.
    pub fn is_draining(&self) -> bool {
        let state = self.lock_state();
        state.end.is_none() && !state.overflowed && !state.is_stalled()
    }

    /// True when the queue took the event; false when the feed will read it from the log.
    pub fn offer_event(&self, seq: LogSeq, event: &Bytes) -> bool {
        let mut state = self.lock_state();
        if state.end.is_some() || state.overflowed {
            return false;
        }
        let is_full = state.events.len() >= limits::STREAM_QUEUE_EVENTS
            || state.bytes + event.len() > limits::STREAM_QUEUE_BYTES;
        if is_full || state.is_stalled() {
            state.overflowed = true;
        } else {
            state.events.push_back((seq, event.clone()));
            state.bytes += event.len();
        }
        let queued = !state.overflowed;
        let waker = state.take_waker();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        queued
    }

    /// An event may have been missed: the feed reads the log again.
    pub fn mark_overflowed(&self) {
        let mut state = self.lock_state();
        state.overflowed = true;
        let waker = state.take_waker();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub fn end_stream(&self, end: StreamEnd) {
        let mut state = self.lock_state();
        state.end.get_or_insert(end);
        let waker = state.take_waker();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Why the stream has been ended, if it has.
    pub(super) fn stream_end(&self) -> Option<StreamEnd> {
        self.lock_state().end
    }

    /// From here on events are taken again. Those in the queue are dropped: the feed is about to read them from the log.
    pub(super) fn reset_overflow(&self) {
        let mut state = self.lock_state();
        state.overflowed = false;
        state.events = VecDeque::new();
        state.bytes = 0;
    }

    /// The socket takes no bytes, or takes bytes again.
    pub(super) fn set_blocked(&self, blocked: bool) {
        let mut state = self.lock_state();
        state.blocked_since = if blocked {
            state.blocked_since.or_else(|| Some(Instant::now()))
        } else {
            None
        };
    }

    /// All queued events at once, so that many events are one write.
    pub(super) async fn take_events(&self) -> QueueRead {
        poll_fn(|context| {
            let mut state = self.lock_state();
            if !state.events.is_empty() {
                state.bytes = 0;
                return Poll::Ready(QueueRead::Events(std::mem::take(&mut state.events)));
            }
            if let Some(end) = state.end {
                return Poll::Ready(QueueRead::Ended(end));
            }
            if state.overflowed {
                return Poll::Ready(QueueRead::Overflowed);
            }
            if !state
                .waker
                .as_ref()
                .is_some_and(|waker| waker.will_wake(context.waker()))
            {
                state.waker = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}
