//! One open stream of a handle: first who it is, then whatever its session has not heard (FRM-62, R-42).

use super::room::Taken;
use super::rooms::Joined;
use crate::Hub;
use crate::delivery::Next;
use bytes::Bytes;
use chorus_wire::cursor::Cursor;
use chorus_wire::sse;
use std::future::poll_fn;

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
        Self { hub, joined, opening: Some(opening) }
    }

    /// The next events. Safe to drop and call again.
    pub async fn next(&mut self) -> Next {
        if let Some(opening) = self.opening.take() {
            return Next::Events(opening);
        }
        let Joined { room, session, .. } = &self.joined;
        match poll_fn(|context| room.poll(session, context)).await {
            Taken::Events(events) => Next::Events(vec![events]),
            Taken::Gap(floor) => Next::Events(vec![gap(floor)]),
            Taken::Ended(why) => Next::Ended(why),
        }
    }
}

/// R-42: something may be missing; what is kept follows `after`.
fn gap(after: Cursor) -> Bytes {
    sse::event("resume-gap", Some(after), &format!(r#"{{"after":"{after}"}}"#))
}

impl Drop for Subscription {
    fn drop(&mut self) {
        metrics::gauge!("chorus_frame_streams").decrement(1);
        self.joined.room.leave(&self.joined.session, self.hub.clock().steady());
        self.hub.bus().changed(self.joined.session.principal);
    }
}
