//! What one stream owes its reader: a bounded queue between the writer and a socket. When it is full, or its reader has
//! stopped draining, it takes no more and its stream goes on from the log instead.

use bytes::Bytes;
use chorus_wire::limits;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::time::Instant;

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The hub is stopping; the reader comes back by its cursor.
    Shutdown,
    /// The key that opened it was rotated.
    KeyRotated,
    /// The agent was unregistered.
    Unregistered,
    /// The store did not answer; the reader comes back by its cursor.
    Unavailable,
    /// The member was removed from the channel.
    Removed,
    ChannelDeleted,
}

impl Ending {
    /// What the reader is told.
    pub const fn reason(self) -> &'static str {
        match self {
            Ending::Shutdown => "shutdown",
            Ending::KeyRotated => "key_rotated",
            Ending::Unregistered => "unregistered",
            Ending::Unavailable => "unavailable",
            Ending::Removed => "removed",
            Ending::ChannelDeleted => "channel_deleted",
        }
    }

    /// The ending of this reason; other hubs say it so.
    pub(crate) fn parse(reason: &str) -> Option<Self> {
        const ALL: [Ending; 6] = [
            Ending::Shutdown,
            Ending::KeyRotated,
            Ending::Unregistered,
            Ending::Unavailable,
            Ending::Removed,
            Ending::ChannelDeleted,
        ];
        ALL.into_iter().find(|ending| ending.reason() == reason)
    }
}

impl Ending {
    /// Whether the reader is still told what there was before the end.
    pub(crate) const fn is_gentle(self) -> bool {
        match self {
            Ending::Shutdown | Ending::Unavailable => true,
            Ending::KeyRotated
            | Ending::Unregistered
            | Ending::Removed
            | Ending::ChannelDeleted => false,
        }
    }
}

/// What a stream finds when it looks.
#[derive(Debug)]
pub(super) enum Taken {
    Events(VecDeque<(i64, Bytes)>),
    /// The queue did not take everything: the log has the rest.
    Behind,
    Ended(Ending),
}

#[derive(Default)]
struct State {
    events: VecDeque<(i64, Bytes)>,
    bytes: usize,
    behind: bool,
    blocked_since: Option<Instant>,
    ending: Option<Ending>,
    reader: Option<Waker>,
}

#[derive(Default)]
pub(crate) struct Queue(Mutex<State>);

impl State {
    fn stalled(&self) -> bool {
        self.blocked_since
            .is_some_and(|since| since.elapsed() >= limits::STREAM_STALLED)
    }

    fn wake(&mut self) -> Option<Waker> {
        self.reader.take()
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event offered now would be a delivery.
    pub fn is_draining(&self) -> bool {
        let state = self.state();
        state.ending.is_none() && !state.behind && !state.stalled()
    }

    /// True when the stream has it; false when it will read it from the log.
    pub fn offer(&self, seq: i64, event: &Bytes) -> bool {
        let mut state = self.state();
        if state.ending.is_some() || state.behind {
            return false;
        }
        let full = state.events.len() >= limits::STREAM_QUEUE_EVENTS
            || state.bytes + event.len() > limits::STREAM_QUEUE_BYTES;
        if full || state.stalled() {
            state.behind = true;
        } else {
            state.events.push_back((seq, event.clone()));
            state.bytes += event.len();
        }
        let (taken, waker) = (!state.behind, state.wake());
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        taken
    }

    /// Something may have been missed: the stream reads the log again.
    pub fn fall_behind(&self) {
        let mut state = self.state();
        state.behind = true;
        let waker = state.wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub fn end(&self, why: Ending) {
        let mut state = self.state();
        state.ending.get_or_insert(why);
        let waker = state.wake();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it has been told to end, and why.
    pub(super) fn ending(&self) -> Option<Ending> {
        self.state().ending
    }

    /// From here on events are kept again; what was kept is in the log, which the stream is about to read.
    pub(super) fn resume(&self) {
        let mut state = self.state();
        state.behind = false;
        state.events = VecDeque::new();
        state.bytes = 0;
    }

    /// The socket takes nothing, or takes bytes again.
    pub(super) fn blocked(&self, blocked: bool) {
        let mut state = self.state();
        state.blocked_since = if blocked {
            state.blocked_since.or_else(|| Some(Instant::now()))
        } else {
            None
        };
    }

    /// Everything that is there, at once: one write for many events.
    pub(super) async fn take(&self) -> Taken {
        poll_fn(|context| {
            let mut state = self.state();
            if !state.events.is_empty() {
                state.bytes = 0;
                return Poll::Ready(Taken::Events(std::mem::take(&mut state.events)));
            }
            if let Some(why) = state.ending {
                return Poll::Ready(Taken::Ended(why));
            }
            if state.behind {
                return Poll::Ready(Taken::Behind);
            }
            if !state
                .reader
                .as_ref()
                .is_some_and(|waker| waker.will_wake(context.waker()))
            {
                state.reader = Some(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}
