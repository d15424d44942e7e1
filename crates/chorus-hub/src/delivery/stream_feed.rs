//! A stream feed: it replays from its cursor, then follows live, without a gap or a repeat between the two.

use super::live_streams::StreamTopic;
use super::stream_queue::{QueueRead, StreamQueue};
use super::{Delivery, render};
use crate::Result;
use crate::identity::CredentialHashes;
use crate::limits;
use crate::store::{
    ChannelId, DbConnection, DeliveryState, EntryKind, LogEntry, LogSeq, MemberId, SubjectId, log,
    log_start, trimmed_streams,
};
use crate::stream_end::StreamEnd;
use bytes::Bytes;
use chorus_wire::cursor::{Cursor, HistoryStart};
use chorus_wire::reach::StreamReach;
use chorus_wire::{Error, ErrorCode, event_chunk};
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
    delivery: Delivery,
    topic: StreamTopic,
    /// A second topic, subscribed only for its end.
    end_topic: Option<StreamTopic>,
    queue: Arc<StreamQueue>,
    /// The last sequence that the reader has been given.
    cursor: LogSeq,
    catching_up: bool,
    /// It is catching up because its queue overflowed, not because the client asked to replay.
    queue_overflowed: bool,
    /// For a stream of activity: the last id that its reader has; one entry can be two rows.
    last_activity_id: u64,
    first_event: Option<Bytes>,
    /// Queued messages among the events that the reader is being given.
    queued_seqs: Vec<LogSeq>,
}

/// What comes next on a stream.
#[derive(Debug)]
pub enum FeedItem {
    /// Whole events, in order, at least one, each framed as one HTTP chunk. A piece holds one event, several small ones,
    /// or a part of a large one.
    Events(Vec<Bytes>),
    Ended(StreamEnd),
}

/// Opens a stream of activity for operators, after an activity id or from an instant.
pub(crate) async fn open_activity_feed(
    delivery: &Delivery,
    credentials: CredentialHashes,
    since: Option<HistoryStart>,
    connected: &str,
) -> Result<StreamFeed> {
    let (since_seq, since_id) = match since {
        // The entry of this id may have a second row after it.
        Some(HistoryStart::AfterId(id)) => {
            let since_seq = render::seq_of_activity(id).previous().max(LogSeq::START);
            (Some(since_seq), Some(id))
        }
        Some(HistoryStart::FromTime(_)) | None => (find_start(delivery, since).await?, None),
    };
    let mut feed = subscribe_feed(
        delivery,
        StreamTopic::Activity,
        FeedReader::with_credentials(credentials),
        since_seq,
    )
    .await?;
    // A cursor beyond the log was replaced by its end.
    let since_id = since_id.filter(|_| Some(feed.cursor) == since_seq);
    feed.last_activity_id = since_id.unwrap_or(0);
    let id = since_id.unwrap_or_else(|| render::last_activity_id(feed.cursor));
    start_feed(feed, Cursor::from_log_seq(id), connected).await
}

/// The sequence after which a stream replays; `None` when it replays nothing.
pub(crate) async fn find_start(
    delivery: &Delivery,
    since: Option<HistoryStart>,
) -> Result<Option<LogSeq>> {
    match since {
        None => Ok(None),
        Some(HistoryStart::AfterId(id)) => Ok(Some(LogSeq::from_client(id))),
        Some(start @ HistoryStart::FromTime(_)) => {
            delivery
                .store()
                .read(async move |tx| Ok(Some(log_start::find_start_seq(tx, start).await?)))
                .await
        }
    }
}

/// Opens a stream of a channel for one of its members, or for an operator. What ends the member's streams ends it too.
pub(crate) async fn open_channel_feed(
    delivery: &Delivery,
    channel_id: ChannelId,
    member_id: Option<MemberId>,
    credentials: CredentialHashes,
    since: Option<LogSeq>,
    connected: &str,
) -> Result<StreamFeed> {
    let mut feed = open_log_feed(
        delivery,
        StreamTopic::Channel(channel_id.into()),
        FeedReader::with_credentials(credentials),
        since,
        connected,
    )
    .await?;
    if let (FeedKind::Log(log_feed), Some(member_id)) = (&mut feed.0, member_id) {
        let end_topic = StreamTopic::Channel(member_id.into());
        delivery
            .live_streams()
            .subscribe(end_topic, log_feed.queue.clone())
            .ok_or(ErrorCode::TooManyStreams)?;
        log_feed.end_topic = Some(end_topic);
    }
    Ok(feed)
}

/// Who reads a stream of the log.
#[derive(Clone, Copy)]
pub(crate) struct FeedReader {
    /// What opens the stream.
    pub credentials: CredentialHashes,
    /// What the reader of an inbox does with a message.
    pub reach: StreamReach,
}

impl FeedReader {
    fn with_credentials(credentials: CredentialHashes) -> Self {
        Self {
            credentials,
            reach: StreamReach::Turns,
        }
    }
}

/// Opens a stream of `topic`, which ends with the key that opens it; `connected` is the data of its first event.
pub(crate) async fn open_log_feed(
    delivery: &Delivery,
    topic: StreamTopic,
    reader: FeedReader,
    since: Option<LogSeq>,
    connected: &str,
) -> Result<StreamFeed> {
    let feed = subscribe_feed(delivery, topic, reader, since).await?;
    let cursor = Cursor::from_log_seq(feed.cursor.to_u64());
    start_feed(feed, cursor, connected).await
}

/// A feed that is offered every entry of the topic from here on, without its first event.
async fn subscribe_feed(
    delivery: &Delivery,
    topic: StreamTopic,
    reader: FeedReader,
    since: Option<LogSeq>,
) -> Result<LogFeed> {
    if delivery.live_streams().is_draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    let queue = Arc::new(StreamQueue::new(reader.credentials, reader.reach));
    let mut newest = delivery
        .live_streams()
        .subscribe(topic, queue.clone())
        .ok_or(ErrorCode::TooManyStreams)?;
    let mut feed = LogFeed {
        delivery: delivery.clone(),
        topic,
        end_topic: None,
        queue,
        cursor: since.unwrap_or(newest),
        catching_up: since.is_some(),
        queue_overflowed: false,
        last_activity_id: 0,
        first_event: None,
        queued_seqs: Vec::new(),
    };
    if since.is_none() && delivery.store().has_peers() {
        // An entry of a peer may not have been read here yet, although it is older than this stream.
        newest = newest.max(delivery.store().newest_seq().await?);
        feed.cursor = newest;
    }
    if feed.cursor > newest {
        let newest = delivery.store().newest_seq().await?;
        if feed.cursor > newest {
            // A cursor beyond the log, for example from before a backup was restored, would hide every entry until the log
            // has grown past it. The id of the first event gives the reader a valid cursor.
            feed.cursor = newest;
            feed.catching_up = false;
        }
    }
    Ok(feed)
}

/// Gives the feed its first event. The event's id is the position before anything else on the stream, so that a stream that
/// breaks before it has carried anything resumes without loss.
async fn start_feed(mut feed: LogFeed, cursor: Cursor, connected: &str) -> Result<StreamFeed> {
    feed.first_event = Some(event_chunk::format_opening_chunk(
        "connected",
        Some(cursor),
        connected,
    ));
    let live_streams = feed.delivery.live_streams();
    // After this a message sent through any hub finds this stream.
    live_streams.wait_presence_synced().await;
    // The hub may have begun to stop between the check and the subscription.
    if live_streams.is_draining() {
        return Err(Error::unavailable("the hub is stopping"));
    }
    Ok(StreamFeed(FeedKind::Log(feed)))
}

impl LogFeed {
    async fn next(&mut self) -> FeedItem {
        if let Some(first_event) = self.first_event.take() {
            return FeedItem::Events(vec![first_event]);
        }
        loop {
            if self.catching_up {
                // A reader that never catches up is ended as well.
                if let Some(stream_end) = self.queue.stream_end() {
                    return FeedItem::Ended(stream_end);
                }
                // On the heap, as all that a stream rarely waits for: an idle stream would keep the room for it.
                match Box::pin(self.read_page()).await {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return FeedItem::Events(events),
                    // In a cluster an unavailable database ends no stream: reconnecting to another hub would not help.
                    Err(error)
                        if self.delivery.store().has_peers()
                            && error.code == ErrorCode::Unavailable =>
                    {
                        tracing::debug!(cause = error.cause, "a stream waits for the log");
                        Box::pin(tokio::time::sleep(limits::LOG_READ_RETRY_INTERVAL)).await;
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
                    let after = self.cursor;
                    let last = events.back().map_or(LogSeq::START, |(seq, _)| *seq);
                    self.cursor = after.max(last);
                    // Events that a page of the log already contained are in the queue as well.
                    let fresh_events: Vec<Bytes> = events
                        .into_iter()
                        .filter(|(seq, _)| *seq > after)
                        .map(|(_, event)| event)
                        .collect();
                    if !fresh_events.is_empty() {
                        return FeedItem::Events(fresh_events);
                    }
                }
                QueueRead::Overflowed => {
                    self.catching_up = true;
                    self.queue_overflowed = true;
                }
                QueueRead::Ended(stream_end) => return FeedItem::Ended(stream_end),
            }
        }
    }

    /// A page of the log after the cursor. A short page is the last one: later entries are in the queue.
    async fn read_page(&mut self) -> Result<Vec<Bytes>> {
        self.queue.reset_overflow();
        let topic = self.topic;
        let after = self.cursor;
        let indexed = self.delivery.store().indexed_seq();
        let (page, trimmed_seq) = self
            .delivery
            .store()
            .read(async move |tx| read_replay_page(tx, topic, after, indexed).await)
            .await?;
        let log::EntryPage {
            entries,
            is_complete: whole,
        } = page;
        self.catching_up = !whole;
        let gap_event = self.pass_gap(trimmed_seq);
        if let Some(last) = entries.last() {
            self.cursor = last.seq;
        }
        let salt = self.delivery.store().trace_salt;
        match self.topic {
            StreamTopic::Subject(_) | StreamTopic::Channel(_) => {
                let queue_overflowed = self.queue_overflowed;
                self.queued_seqs = entries
                    .iter()
                    .filter(|entry| is_undelivered(entry, queue_overflowed))
                    .map(|entry| entry.seq)
                    .collect();
                self.queue_overflowed &= self.catching_up;
                let seal_key = self.delivery.seal_key();
                let events = entries
                    .iter()
                    .map(|entry| render::render_event(entry, salt, seal_key));
                Ok(gap_event.into_iter().chain(events).collect())
            }
            StreamTopic::Activity => {
                let after = self.last_activity_id;
                let events = entries
                    .iter()
                    .filter_map(|entry| render::render_activity_events(entry, salt, after));
                Ok(gap_event.into_iter().chain(events).collect())
            }
        }
    }

    /// Moves the cursor past what retention has deleted. The event tells the reader that it missed something.
    fn pass_gap(&mut self, trimmed_seq: LogSeq) -> Option<Bytes> {
        // Of activity, the reader may have rows of the entry after the cursor.
        let last_row_seq = render::seq_of_activity(self.last_activity_id);
        let read_seq = self.cursor.max(last_row_seq);
        if trimmed_seq <= read_seq {
            return None;
        }
        self.cursor = trimmed_seq;
        match self.topic {
            StreamTopic::Subject(_) | StreamTopic::Channel(_) => {
                Some(render::render_gap(read_seq.to_u64(), trimmed_seq.to_u64()))
            }
            StreamTopic::Activity => {
                let from = if read_seq > last_row_seq {
                    render::last_activity_id(read_seq)
                } else {
                    self.last_activity_id
                };
                Some(render::render_gap(
                    from,
                    render::last_activity_id(trimmed_seq),
                ))
            }
        }
    }

    /// A replay turns `queued` into `delivered`.
    fn confirm_written(&mut self) {
        if self.queued_seqs.is_empty() {
            return;
        }
        let seqs = std::mem::take(&mut self.queued_seqs);
        self.delivery.store().mark_delivered(seqs);
    }
}

/// A page of the log for a stream, and the last entry of the stream that retention has deleted.
async fn read_replay_page(
    tx: &DbConnection<'_>,
    topic: StreamTopic,
    after: LogSeq,
    indexed: LogSeq,
) -> Result<(log::EntryPage, LogSeq)> {
    let limit = limits::REPLAY_PAGE;
    loop {
        let (page, subject, trimmed_seq) = match topic {
            StreamTopic::Subject(subject) | StreamTopic::Channel(subject) => {
                let trimmed_seq = trimmed_streams::find_trimmed_seq(tx, subject).await?;
                let page = log::list_subject_entries(tx, subject, after, indexed, limit).await?;
                (page, subject, trimmed_seq)
            }
            StreamTopic::Activity => {
                let subject = SubjectId::HUB;
                let trimmed_seq = trimmed_streams::find_trimmed_seq(tx, subject).await?;
                let page = log::list_operator_entries(tx, after, limit).await?;
                (page, subject, trimmed_seq)
            }
        };
        // A retention step between the two reads would hide what it deleted.
        if trimmed_streams::find_trimmed_seq(tx, subject).await? == trimmed_seq {
            return Ok((page, trimmed_seq));
        }
    }
}

/// Whether writing this entry to a stream turns it into a delivery. After an overflow that includes messages marked `sse`, which
/// were meant for the queue.
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
        self.delivery
            .live_streams()
            .unsubscribe(self.topic, &self.queue);
        if let Some(end_topic) = self.end_topic {
            self.delivery
                .live_streams()
                .unsubscribe(end_topic, &self.queue);
        }
        // an agent is online until its inbox closes.
        if let StreamTopic::Subject(subject) = self.topic {
            self.delivery
                .0
                .identity
                .record_agent_seen(subject.as_agent());
        }
    }
}
