//! One open stream: replay since the cursor, then live, without a gap or a repeat between them.

use super::live_streams::StreamTopic;
use super::render;
use super::stream_queue::{QueueRead, StreamQueue};
use crate::store::{DeliveryState, EntryKind, LogEntry, log, messages};
use crate::stream_end::StreamEnd;
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{Code, Error, cursor::Cursor, limits, sse};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// One open stream: the events that its reader has not got yet, in order. Dropping it closes the stream.
pub struct StreamFeed(FeedKind);

enum FeedKind {
    /// The events are entries of the log: inboxes, channels, activity.
    Log(LogFeed),
    /// The events come from a protocol that keeps them itself, such as the frame ring of a handle.
    Source(Box<dyn FeedSource>),
}

/// Events that are not in the log. They are not deliveries: nothing is recorded when they are written.
pub(crate) trait FeedSource: Send + Sync {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<FeedItem>;
}

impl StreamFeed {
    pub(crate) fn from_source(source: impl FeedSource + 'static) -> Self {
        Self(FeedKind::Source(Box::new(source)))
    }

    /// The next events. Safe to drop and call again.
    pub async fn next(&mut self) -> FeedItem {
        match &mut self.0 {
            FeedKind::Log(log_feed) => log_feed.next().await,
            FeedKind::Source(source) => poll_fn(|context| source.poll_next(context)).await,
        }
    }

    /// The socket takes no bytes (true), or takes bytes again: only a draining stream counts as a delivery.
    pub fn set_blocked(&self, blocked: bool) {
        match &self.0 {
            FeedKind::Log(log_feed) => log_feed.queue.set_blocked(blocked),
            FeedKind::Source(_) => {}
        }
    }

    /// The last events were written. It is a call of its own and not part of `next`, because a reader that disconnects after
    /// its last message has received that message.
    pub fn confirm_written(&mut self) {
        match &mut self.0 {
            FeedKind::Log(log_feed) => log_feed.confirm_written(),
            FeedKind::Source(_) => {}
        }
    }
}

/// A stream of the log: replay since the cursor, then live.
struct LogFeed {
    hub: Hub,
    topic: StreamTopic,
    /// Where it listens only for its end.
    end_topic: Option<StreamTopic>,
    queue: Arc<StreamQueue>,
    /// The last place that the reader has been given.
    cursor: i64,
    catching_up: bool,
    /// It is catching up because its queue did not take everything, and not because it was asked to replay.
    queue_overflowed: bool,
    /// For a stream of activity: the last id that its reader has; one entry can be two of them.
    last_activity_id: u64,
    first_event: Option<Bytes>,
    /// Messages that waited and are in the chunk that the reader is being given.
    queued_seqs: Vec<i64>,
}

/// What comes next on a stream.
#[derive(Debug)]
pub enum FeedItem {
    /// Whole events, in order, at least one.
    Events(Vec<Bytes>),
    Ended(StreamEnd),
}

/// Opens a stream of what operators hear, after the activity of this id.
pub(crate) async fn open_activity_feed(
    hub: &Hub,
    since: Option<u64>,
    connected: &str,
) -> Result<StreamFeed> {
    // The entry that the id is part of may have another part after it.
    let since_seq = since.map(|id| (render::seq_of_activity(id) - 1).max(0));
    let mut feed = open_log_feed(hub, StreamTopic::Activity, since_seq, connected).await?;
    if let FeedKind::Log(log_feed) = &mut feed.0 {
        log_feed.last_activity_id = since.unwrap_or(0);
    }
    Ok(feed)
}

/// Opens a stream of a room for one of its members, or for an operator: what ends the member's streams ends it too.
pub(crate) async fn open_channel_feed(
    hub: &Hub,
    channel_id: i64,
    member_id: Option<i64>,
    since: Option<i64>,
    connected: &str,
) -> Result<StreamFeed> {
    let mut feed = open_log_feed(hub, StreamTopic::Channel(channel_id), since, connected).await?;
    if let (FeedKind::Log(log_feed), Some(member_id)) = (&mut feed.0, member_id) {
        let end_topic = StreamTopic::Channel(member_id);
        hub.live_streams()
            .subscribe(end_topic, log_feed.queue.clone())
            .ok_or(Code::TooManyStreams)?;
        log_feed.end_topic = Some(end_topic);
    }
    Ok(feed)
}

/// Opens a stream of `topic`; `connected` is the data of its first event.
pub(crate) async fn open_log_feed(
    hub: &Hub,
    topic: StreamTopic,
    since: Option<i64>,
    connected: &str,
) -> Result<StreamFeed> {
    if hub.live_streams().is_draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    let queue = Arc::<StreamQueue>::default();
    let mut newest = hub
        .live_streams()
        .subscribe(topic, queue.clone())
        .ok_or(Code::TooManyStreams)?;
    let mut feed = LogFeed {
        hub: hub.clone(),
        topic,
        end_topic: None,
        queue,
        cursor: since.unwrap_or(newest),
        catching_up: since.is_some(),
        queue_overflowed: false,
        last_activity_id: 0,
        first_event: Some(sse::format_opening_event("connected", connected)),
        queued_seqs: Vec::new(),
    };
    if since.is_none() && hub.store().has_peers() {
        // What another hub wrote may not be known here yet, and came before this stream all the same.
        newest = newest.max(hub.store().newest_seq().await?);
        feed.cursor = newest;
    }
    if feed.cursor > newest {
        let newest = hub.store().newest_seq().await?;
        if feed.cursor > newest {
            // A cursor of another life of this hub, say before a backup was restored: taken at its word it would hide
            // everything until the log has grown past it. The first event's id tells the reader where it is now.
            (feed.cursor, feed.catching_up) = (newest, false);
            feed.first_event = Some(sse::format_opening_event_at(
                "connected",
                Cursor::from_log_seq(newest as u64),
                connected,
            ));
        }
    }
    // From here on a send through any hub finds this stream.
    hub.live_streams().wait_presence_synced().await;
    // The hub may have begun to stop between the question and the subscription.
    if hub.live_streams().is_draining() {
        Err(Error::unavailable("the hub is stopping"))
    } else {
        Ok(StreamFeed(FeedKind::Log(feed)))
    }
}

impl LogFeed {
    async fn next(&mut self) -> FeedItem {
        if let Some(first_event) = self.first_event.take() {
            return FeedItem::Events(vec![first_event]);
        }
        loop {
            if self.catching_up {
                // A reader that is always a page behind ends like every other.
                if let Some(stream_end) = self.queue.stream_end() {
                    return FeedItem::Ended(stream_end);
                }
                match self.read_page().await {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return FeedItem::Events(events),
                    // A database that is away for a while ends no stream that shares it with other hubs: they have the
                    // same trouble.
                    Err(error)
                        if self.hub.store().has_peers() && error.code == Code::Unavailable =>
                    {
                        tracing::debug!(cause = error.cause, "a stream waits for the log");
                        tokio::time::sleep(limits::LOG_READ_RETRY_INTERVAL).await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, cause = error.cause, "a stream could not read the log");
                        return FeedItem::Ended(StreamEnd::Unavailable);
                    }
                }
                continue;
            }
            match self.queue.take_events().await {
                QueueRead::Events(events) => {
                    let (after, last) = (self.cursor, events.back().map_or(0, |(seq, _)| *seq));
                    self.cursor = after.max(last);
                    // What a page of the log has already shown comes again in the queue.
                    let fresh_events: Vec<Bytes> = events
                        .into_iter()
                        .filter(|(seq, _)| *seq > after)
                        .map(|(_, event)| event)
                        .collect();
                    if !fresh_events.is_empty() {
                        return FeedItem::Events(fresh_events);
                    }
                }
                QueueRead::Overflowed => (self.catching_up, self.queue_overflowed) = (true, true),
                QueueRead::Ended(stream_end) => return FeedItem::Ended(stream_end),
            }
        }
    }

    /// A page of the log after the cursor. A short page is the last one: whatever was committed later is in the queue.
    async fn read_page(&mut self) -> Result<Vec<Bytes>> {
        self.queue.reset_overflow();
        let (topic, after, indexed) = (self.topic, self.cursor, self.hub.store().indexed_seq());
        let page = self
            .hub
            .store()
            .read(async move |tx| {
                Ok(match topic {
                    StreamTopic::Subject(subject) | StreamTopic::Channel(subject) => {
                        log::list_subject_entries(tx, subject, after, indexed, limits::REPLAY_PAGE)
                            .await?
                    }
                    StreamTopic::Activity => {
                        log::list_operator_entries(tx, after, limits::REPLAY_PAGE).await?
                    }
                })
            })
            .await?;
        let log::EntryPage {
            entries,
            is_complete: whole,
        } = page;
        self.catching_up = !whole;
        if let Some(last) = entries.last() {
            self.cursor = last.seq;
        }
        let salt = self.hub.store().trace_salt;
        match self.topic {
            StreamTopic::Subject(_) | StreamTopic::Channel(_) => {
                let queue_overflowed = self.queue_overflowed;
                self.queued_seqs = entries
                    .iter()
                    .filter(|entry| is_undelivered(entry, queue_overflowed))
                    .map(|entry| entry.seq)
                    .collect();
                self.queue_overflowed &= self.catching_up;
                Ok(entries
                    .iter()
                    .map(|entry| render::render_event(entry, salt))
                    .collect())
            }
            StreamTopic::Activity => {
                let after = self.last_activity_id;
                Ok(entries
                    .iter()
                    .filter_map(|entry| render::render_activity_events(entry, salt, after))
                    .collect())
            }
        }
    }

    /// A replay turns `queued` into `delivered`.
    fn confirm_written(&mut self) {
        if self.queued_seqs.is_empty() {
            return;
        }
        let (hub, seqs) = (self.hub.clone(), std::mem::take(&mut self.queued_seqs));
        tokio::spawn(async move {
            let result = hub
                .store()
                .write(async move |txn| Ok(messages::mark_messages_delivered(txn, &seqs).await?))
                .await;
            if let Err(error) = result {
                // The next replay says it again.
                tracing::warn!(%error, cause = error.cause, "delivered messages could not be marked");
            }
        });
    }
}

/// A stream that fell behind also delivers what was to go to its queue: its sender is about to call it queued.
fn is_undelivered(entry: &LogEntry, queue_overflowed: bool) -> bool {
    let is_waiting = match entry.delivery {
        Some(DeliveryState::Queued) => true,
        Some(DeliveryState::Sse) => queue_overflowed,
        Some(DeliveryState::Webhook | DeliveryState::Failed | DeliveryState::Pending) | None => {
            false
        }
    };
    entry.kind == EntryKind::Message && is_waiting && entry.delivered_at.is_none()
}

impl Drop for LogFeed {
    fn drop(&mut self) {
        self.hub.live_streams().unsubscribe(self.topic, &self.queue);
        if let Some(end_topic) = self.end_topic {
            self.hub.live_streams().unsubscribe(end_topic, &self.queue);
        }
        // an open inbox is being there, up to its last moment.
        if let StreamTopic::Subject(subject) = self.topic {
            self.hub.identity().record_agent_seen(subject);
        }
    }
}
