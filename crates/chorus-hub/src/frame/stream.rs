//! One open stream of a handle: first who it is, then whatever its session has not heard (FRM-62, R-42).

use super::room::Taken;
use super::rooms::Joined;
use crate::Hub;
use crate::delivery::Next;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::{limits, sse};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Dropping it is leaving.
pub(crate) struct Subscription {
    hub: Hub,
    joined: Joined,
    /// What it is told before anything else.
    opening: Option<Vec<Bytes>>,
}

impl Subscription {
    /// `connected` is the data of the first event. That event has an id too: a stream that breaks off before its first
    /// frame goes on from where it began.
    pub(super) fn new(hub: Hub, joined: Joined, connected: &str) -> Self {
        let mut opening = vec![sse::opening_at("connected", joined.start, connected)];
        if joined.gap {
            opening.push(gap(joined.start));
        }
        Self {
            hub,
            joined,
            opening: Some(opening),
        }
    }

    /// The next events. Safe to drop and call again.
    pub async fn next(&mut self) -> Next {
        if let Some(opening) = self.opening.take() {
            return Next::Events(opening);
        }
        loop {
            match poll_fn(|context| self.poll(context)).await {
                Some(Taken::Events(events)) => return Next::Events(vec![events]),
                Some(Taken::Gap(floor)) => return Next::Events(vec![gap(floor)]),
                Some(Taken::Ended(why)) => return Next::Ended(why),
                None => tokio::time::sleep(limits::TAIL_EVERY).await,
            }
        }
    }

    /// D-81: a hub that cannot read the log does not know whose key was taken back elsewhere. Until it does it tells nobody
    /// anything; what is said meanwhile stays in the ring.
    fn poll(&self, context: &Context<'_>) -> Poll<Option<Taken>> {
        let Joined { room, session, .. } = &self.joined;
        if self.hub.bus().is_current() {
            return room.poll(session, context).map(Some);
        }
        Poll::Ready(session.ending.get().map(|why| Taken::Ended(*why)))
    }
}

/// R-42: something may be missing; what is kept follows `after`.
fn gap(after: Cursor) -> Bytes {
    sse::event(
        "resume-gap",
        Some(after),
        &format!(r#"{{"after":"{after}"}}"#),
    )
}

impl Drop for Subscription {
    fn drop(&mut self) {
        metrics::gauge!("chorus_frame_streams").decrement(1);
        self.joined
            .room
            .leave(&self.joined.session, self.hub.clock().steady());
        self.hub.bus().changed(self.joined.session.principal);
    }
}
