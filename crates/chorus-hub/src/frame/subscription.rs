//! One open frame stream: the opening event, then the unread frames of its session (FRM-62, R-42).

use super::Frames;
use super::handle_sessions::SessionPoll;
use super::session::FrameSession;
use super::session_registry::JoinedSession;
use crate::delivery::{FeedItem, FeedSource};
use crate::limits;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::event_chunk;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};

/// Dropping it closes the session.
pub(crate) struct FrameSubscription {
    frames: Frames,
    joined: JoinedSession,
    /// The events before the first frame.
    first_events: Option<Vec<Bytes>>,
    /// Set while the hub cannot read the log, until it looks again.
    pause: Option<Pin<Box<Sleep>>>,
}

impl FrameSubscription {
    /// `connected` is the data of the first event. That event has an id too, so that a stream that is interrupted before its
    /// first frame resumes from where it began. After a gap only `resume-gap` has it, because some readers drop an event
    /// whose id they have seen (R-100).
    pub(super) fn new(frames: Frames, joined: JoinedSession, connected: &str) -> Self {
        let mut first_events = vec![event_chunk::format_opening_chunk(
            "connected",
            (!joined.has_gap).then_some(joined.start_cursor),
            connected,
        )];
        if joined.has_gap {
            first_events.push(gap_event(joined.start_cursor));
        }
        Self {
            frames,
            joined,
            first_events: Some(first_events),
            pause: None,
        }
    }

    /// What is open when the stream begins (R-83): it comes before a gap event, because that belongs to the frames. It has no
    /// id, so that it is not resumed after.
    pub fn set_snapshot(&mut self, open_items: &str) {
        let event = event_chunk::format_event_chunk("open-items", None, open_items);
        if let Some(first_events) = &mut self.first_events {
            first_events.insert(1, event);
        }
    }

    /// The session that reads the stream.
    pub fn session(&self) -> &FrameSession {
        &self.joined.session
    }

    /// D-81: a hub that cannot read the log does not know which keys were revoked at its peers. Until it can, its streams get
    /// no frames; they stay in the ring. `None` while that is so.
    fn poll_session(&self, context: &Context<'_>) -> Poll<Option<SessionPoll>> {
        let JoinedSession {
            handle_sessions,
            session,
            ..
        } = &self.joined;
        if self.frames.context().store().is_caught_up() {
            return handle_sessions.poll_session(session, context).map(Some);
        }
        Poll::Ready(
            session
                .stream_end
                .get()
                .map(|reason| SessionPoll::Ended(*reason)),
        )
    }
}

impl FeedSource for FrameSubscription {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<FeedItem> {
        if let Some(first_events) = self.first_events.take() {
            return Poll::Ready(FeedItem::Events(first_events));
        }
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.poll_session(context)) {
                Some(SessionPoll::Events(events)) => {
                    return Poll::Ready(FeedItem::Events(events));
                }
                Some(SessionPoll::Gap(cursor)) => {
                    return Poll::Ready(FeedItem::Events(vec![gap_event(cursor)]));
                }
                Some(SessionPoll::Ended(reason)) => return Poll::Ready(FeedItem::Ended(reason)),
                None => self.pause = Some(Box::pin(sleep(limits::LOG_POLL_INTERVAL))),
            }
        }
    }
}

/// R-42: frames may be missing; the kept ones follow `after`.
fn gap_event(after: Cursor) -> Bytes {
    event_chunk::format_event_chunk(
        "resume-gap",
        Some(after),
        &format!(r#"{{"after":"{after}"}}"#),
    )
}

impl Drop for FrameSubscription {
    fn drop(&mut self) {
        metrics::gauge!("chorus_frame_streams").decrement(1);
        self.joined
            .handle_sessions
            .remove_session(&self.joined.session, self.frames.monotonic_now());
        self.frames
            .context()
            .live_streams()
            .mark_presence_changed(self.joined.session.principal.into());
    }
}
