//! One open stream: replay since the cursor, then live, without a gap or a repeat between them.

use super::queue::{Ending, Queue, Taken};
use super::render;
use crate::bus::Topic;
use crate::frame::Subscription;
use crate::store::{Entry, Kind, Mark, log, messages};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{Code, Error, cursor::Cursor, limits, sse};
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
    /// Where it listens only for its end.
    tether: Option<Topic>,
    queue: Arc<Queue>,
    /// The last place that the reader has been given.
    cursor: i64,
    catching_up: bool,
    /// It is catching up because its queue did not take everything, and not because it was asked to replay.
    fell_behind: bool,
    /// For a stream of activity: the last id that its reader has; one entry can be two of them.
    activity: u64,
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

/// Opens a stream of what operators hear, after the activity of this id.
pub(crate) async fn open_activity(hub: &Hub, since: Option<u64>, connected: &str) -> Result<Feed> {
    // The entry that the id is part of may have another part after it.
    let place = since.map(|id| (render::place_of(id) - 1).max(0));
    let mut feed = open(hub, Topic::Activity, place, connected).await?;
    if let Source::Log(logged) = &mut feed.0 {
        logged.activity = since.unwrap_or(0);
    }
    Ok(feed)
}

/// Opens a stream of a room for one of its members, or for an operator: what ends the member's streams ends it too.
pub(crate) async fn open_room(
    hub: &Hub,
    room: i64,
    member: Option<i64>,
    since: Option<i64>,
    connected: &str,
) -> Result<Feed> {
    let mut feed = open(hub, Topic::Room(room), since, connected).await?;
    if let (Source::Log(logged), Some(member)) = (&mut feed.0, member) {
        let tether = Topic::Room(member);
        hub.bus()
            .subscribe(tether, logged.queue.clone())
            .ok_or(Code::TooManyStreams)?;
        logged.tether = Some(tether);
    }
    Ok(feed)
}

/// Opens a stream of `topic`; `connected` is the data of its first event.
pub(crate) async fn open(
    hub: &Hub,
    topic: Topic,
    since: Option<i64>,
    connected: &str,
) -> Result<Feed> {
    if hub.bus().draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    let queue = Arc::<Queue>::default();
    let mut newest = hub
        .bus()
        .subscribe(topic, queue.clone())
        .ok_or(Code::TooManyStreams)?;
    let mut feed = Logged {
        hub: hub.clone(),
        topic,
        tether: None,
        queue,
        cursor: since.unwrap_or(newest),
        catching_up: since.is_some(),
        fell_behind: false,
        activity: 0,
        opening: Some(sse::opening("connected", connected)),
        waited: Vec::new(),
    };
    if since.is_none() && hub.mesh().is_some() {
        // What another hub wrote may not be known here yet, and came before this stream all the same.
        newest = newest.max(hub.store().newest().await?);
        feed.cursor = newest;
    }
    if feed.cursor > newest {
        let newest = hub.store().newest().await?;
        if feed.cursor > newest {
            // A cursor of another life of this hub, say before a backup was restored: taken at its word it would hide
            // everything until the log has grown past it. The first event's id tells the reader where it is now.
            (feed.cursor, feed.catching_up) = (newest, false);
            feed.opening = Some(sse::opening_at(
                "connected",
                Cursor::log(newest as u64),
                connected,
            ));
        }
    }
    // From here on a send through any hub finds this stream.
    hub.bus().told().await;
    // The hub may have begun to stop between the question and the subscription.
    if hub.bus().draining() {
        Err(Error::unavailable("the hub is stopping"))
    } else {
        Ok(Feed(Source::Log(feed)))
    }
}

impl Logged {
    async fn next(&mut self) -> Next {
        if let Some(opening) = self.opening.take() {
            return Next::Events(vec![opening]);
        }
        loop {
            if self.catching_up {
                // A reader that is always a page behind ends like every other.
                if let Some(why) = self.queue.ending() {
                    return Next::Ended(why);
                }
                match self.page().await {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return Next::Events(events),
                    // A database that is away for a while ends no stream that shares it with other hubs: they have the
                    // same trouble.
                    Err(error) if self.hub.mesh().is_some() && error.code == Code::Unavailable => {
                        tracing::debug!(cause = error.cause, "a stream waits for the log");
                        tokio::time::sleep(limits::LOG_AGAIN).await;
                    }
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
                    let fresh: Vec<Bytes> = events
                        .into_iter()
                        .filter(|(seq, _)| *seq > after)
                        .map(|(_, event)| event)
                        .collect();
                    if !fresh.is_empty() {
                        return Next::Events(fresh);
                    }
                }
                Taken::Behind => (self.catching_up, self.fell_behind) = (true, true),
                Taken::Ended(why) => return Next::Ended(why),
            }
        }
    }

    /// A page of the log after the cursor. A short page is the last one: whatever was committed later is in the queue.
    async fn page(&mut self) -> Result<Vec<Bytes>> {
        self.queue.resume();
        let (topic, after, indexed) = (self.topic, self.cursor, self.hub.store().indexed());
        let page = self
            .hub
            .store()
            .read(async move |tx| {
                Ok(match topic {
                    Topic::Subject(subject) | Topic::Room(subject) => {
                        log::heard(tx, subject, after, indexed, limits::REPLAY_PAGE).await?
                    }
                    Topic::Activity => log::everything(tx, after, limits::REPLAY_PAGE).await?,
                })
            })
            .await?;
        let log::Page { entries, whole } = page;
        self.catching_up = !whole;
        if let Some(last) = entries.last() {
            self.cursor = last.seq;
        }
        let salt = self.hub.store().salt;
        match self.topic {
            Topic::Subject(_) | Topic::Room(_) => {
                let fell_behind = self.fell_behind;
                self.waited = entries
                    .iter()
                    .filter(|entry| waits(entry, fell_behind))
                    .map(|entry| entry.seq)
                    .collect();
                self.fell_behind &= self.catching_up;
                Ok(entries
                    .iter()
                    .map(|entry| render::event(entry, salt))
                    .collect())
            }
            Topic::Activity => {
                let after = self.activity;
                Ok(entries
                    .iter()
                    .filter_map(|entry| render::activity_event(entry, salt, after))
                    .collect())
            }
        }
    }

    /// A replay turns `queued` into `delivered`.
    fn written(&mut self) {
        if self.waited.is_empty() {
            return;
        }
        let (hub, seqs) = (self.hub.clone(), std::mem::take(&mut self.waited));
        tokio::spawn(async move {
            let marked = hub
                .store()
                .write(async move |txn| Ok(messages::caught_up(txn, &seqs).await?))
                .await;
            if let Err(error) = marked {
                // The next replay says it again.
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }
}

/// A stream that fell behind also delivers what was to go to its queue: its sender is about to call it queued.
fn waits(entry: &Entry, fell_behind: bool) -> bool {
    let undelivered = match entry.via {
        Some(Mark::Queued) => true,
        Some(Mark::Sse) => fell_behind,
        Some(Mark::Webhook | Mark::Failed | Mark::Pending) | None => false,
    };
    entry.kind == Kind::Message && undelivered && entry.delivered_at.is_none()
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.hub.bus().unsubscribe(self.topic, &self.queue);
        if let Some(tether) = self.tether {
            self.hub.bus().unsubscribe(tether, &self.queue);
        }
        // an open inbox is being there, up to its last moment.
        if let Topic::Subject(subject) = self.topic {
            self.hub.was_heard(subject);
        }
    }
}
