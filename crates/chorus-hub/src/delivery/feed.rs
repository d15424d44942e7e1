//! One open stream: replay since the cursor, then live, without a gap or a repeat between them.

use super::queue::{Ending, Queue, Taken};
use super::render;
use crate::bus::Topic;
use crate::frame::Subscription;
use crate::store::{Entry, Kind, Mark, log, messages};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{Code, Error, limits, sse};
use std::sync::Arc;

/// What its reader is still owed, in order. Dropping it is leaving.
pub struct Feed(Source);

/// Where it comes from.
enum Source {
    /// Kept for good: the inbox, and what operators watch.
    Log(Logged),
    /// Kept for minutes: the frames of a handle.
    Ring(Subscription),
}

impl From<Subscription> for Feed {
    fn from(subscription: Subscription) -> Self {
        Self(Source::Ring(subscription))
    }
}

impl Feed {
    /// The next events. Safe to drop and call again.
    pub async fn next(&mut self) -> Next {
        match &mut self.0 {
            Source::Log(logged) => logged.next().await,
            Source::Ring(subscription) => subscription.next().await,
        }
    }

    /// The socket takes nothing (true), or takes bytes again: what a delivery is depends on it.
    pub fn blocked(&self, blocked: bool) {
        match &self.0 {
            Source::Log(logged) => logged.queue.blocked(blocked),
            // It has a cursor and nothing that could fill up.
            Source::Ring(_) => {}
        }
    }

    /// The last events were written. Said by itself and not by asking for more, since a reader that leaves with its last
    /// message has that message.
    pub fn written(&mut self) {
        match &mut self.0 {
            Source::Log(logged) => logged.written(),
            // FRM-72: after a frame is emitted nobody owes anything.
            Source::Ring(_) => {}
        }
    }
}

/// A stream of the log: replay since the cursor, then live.
struct Logged {
    hub: Hub,
    topic: Topic,
    queue: Arc<Queue>,
    /// The last place that the reader has been given.
    cursor: i64,
    catching_up: bool,
    opening: Option<Bytes>,
    /// Messages that waited and are in the chunk that the reader is being given.
    waited: Vec<i64>,
}

/// What comes next on a stream.
#[derive(Debug)]
pub enum Next {
    /// Whole events, in order, at least one.
    Events(Vec<Bytes>),
    Ended(Ending),
}

/// Opens a stream of `topic`; `connected` is the data of its first event.
pub(crate) async fn open(hub: &Hub, topic: Topic, since: Option<i64>, connected: &str) -> Result<Feed> {
    if hub.bus().draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    let queue = Arc::<Queue>::default();
    let newest = hub.bus().subscribe(topic, queue.clone()).ok_or(Code::TooManyStreams)?;
    let feed = Logged {
        hub: hub.clone(),
        topic,
        queue,
        cursor: since.unwrap_or(newest),
        catching_up: since.is_some(),
        opening: Some(sse::opening("connected", connected)),
        waited: Vec::new(),
    };
    // The hub may have begun to stop between the question and the subscription.
    if hub.bus().draining() { Err(Error::unavailable("the hub is stopping")) } else { Ok(Feed(Source::Log(feed))) }
}

impl Logged {
    async fn next(&mut self) -> Next {
        if let Some(opening) = self.opening.take() {
            return Next::Events(vec![opening]);
        }
        loop {
            if self.catching_up {
                match self.page().await {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return Next::Events(events),
                    Err(error) => {
                        tracing::warn!(%error, cause = error.cause, "a stream could not read the log");
                        return Next::Ended(Ending::Unavailable);
                    }
                }
                continue;
            }
            match self.queue.take().await {
                Taken::Events(events) => {
                    let (after, last) = (self.cursor, events.back().map_or(0, |(seq, _)| *seq));
                    self.cursor = after.max(last);
                    // What a page of the log has already shown comes again in the queue.
                    let fresh: Vec<Bytes> =
                        events.into_iter().filter(|(seq, _)| *seq > after).map(|(_, event)| event).collect();
                    if !fresh.is_empty() {
                        return Next::Events(fresh);
                    }
                }
                Taken::Behind => self.catching_up = true,
                Taken::Ended(why) => return Next::Ended(why),
            }
        }
    }

    /// A page of the log after the cursor. A short page is the last one: whatever was committed later is in the queue.
    async fn page(&mut self) -> Result<Vec<Bytes>> {
        self.queue.resume();
        let (topic, after, indexed) = (self.topic, self.cursor, self.hub.store().indexed());
        let entries = self
            .hub
            .store()
            .read(async move |tx| {
                Ok(match topic {
                    Topic::Subject(subject) => log::heard(tx, subject, after, indexed, limits::REPLAY_PAGE).await?,
                    Topic::Activity => log::everything(tx, after, limits::REPLAY_PAGE).await?,
                })
            })
            .await?;
        self.catching_up = entries.len() == limits::REPLAY_PAGE;
        if let Some(last) = entries.last() {
            self.cursor = last.seq;
        }
        let salt = self.hub.store().salt;
        match self.topic {
            Topic::Subject(_) => {
                self.waited = entries.iter().filter(|entry| waits(entry)).map(|entry| entry.seq).collect();
                Ok(entries.iter().map(|entry| render::event(entry, salt)).collect())
            }
            Topic::Activity => Ok(entries.iter().filter_map(|entry| render::activity_event(entry, salt)).collect()),
        }
    }

    /// A replay turns `queued` into `delivered`.
    fn written(&mut self) {
        if self.waited.is_empty() {
            return;
        }
        let (hub, seqs) = (self.hub.clone(), std::mem::take(&mut self.waited));
        tokio::spawn(async move {
            let marked = hub.store().write(async move |txn| Ok(messages::caught_up(txn, &seqs).await?)).await;
            if let Err(error) = marked {
                // The next replay says it again.
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }
}

fn waits(entry: &Entry) -> bool {
    entry.kind == Kind::Message && entry.via == Some(Mark::Queued) && entry.delivered_at.is_none()
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.hub.bus().unsubscribe(self.topic, &self.queue);
        // an open inbox is being there, up to its last moment.
        if let Topic::Subject(subject) = self.topic {
            self.hub.liveness().beat(subject, self.hub.clock().steady());
        }
    }
}
