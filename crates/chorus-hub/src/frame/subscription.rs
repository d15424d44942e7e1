//! One open stream of a handle: first who it is, then whatever its session has not heard (FRM-62, R-42).

use super::handle_sessions::SessionPoll;
use super::session_registry::JoinedSession;
use crate::Hub;
use crate::delivery::FeedItem;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::{limits, sse};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Dropping it is leaving.
pub(crate) struct FrameSubscription {
    hub: Hub,
    joined: JoinedSession,
    /// What it is told before anything else.
    first_events: Option<Vec<Bytes>>,
}

impl FrameSubscription {
    /// `connected` is the data of the first event. That event has an id too: a stream that breaks off before its first
    /// frame goes on from where it began.
    pub(super) fn new(hub: Hub, joined: JoinedSession, connected: &str) -> Self {
        let mut first_events = vec![sse::format_opening_event_at(
            "connected",
            joined.start_cursor,
            connected,
        )];
        if joined.has_gap {
            first_events.push(gap_event(joined.start_cursor));
        }
        Self {
            hub,
            joined,
            first_events: Some(first_events),
        }
    }

    /// The next events. Safe to drop and call again.
    pub async fn next_events(&mut self) -> FeedItem {
        if let Some(first_events) = self.first_events.take() {
            return FeedItem::Events(first_events);
        }
        loop {
            match poll_fn(|context| self.poll_session(context)).await {
                Some(SessionPoll::Events(events)) => return FeedItem::Events(vec![events]),
                Some(SessionPoll::Gap(cursor)) => return FeedItem::Events(vec![gap_event(cursor)]),
                Some(SessionPoll::Ended(reason)) => return FeedItem::Ended(reason),
                None => tokio::time::sleep(limits::LOG_POLL_INTERVAL).await,
            }
        }
    }

    /// D-81: a hub that cannot read the log does not know whose key was taken back elsewhere. Until it does it tells nobody
    /// anything; what is said meanwhile stays in the ring.
    fn poll_session(&self, context: &Context<'_>) -> Poll<Option<SessionPoll>> {
        let JoinedSession {
            handle_sessions,
            session,
            ..
        } = &self.joined;
        if self.hub.stream_bus().is_caught_up() {
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

/// R-42: something may be missing; what is kept follows `after`.
fn gap_event(after: Cursor) -> Bytes {
    sse::format_event(
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
            .remove_session(&self.joined.session, self.hub.clock().monotonic_now());
        self.hub
            .stream_bus()
            .mark_presence_changed(self.joined.session.principal);
    }
}
