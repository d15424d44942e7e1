//! Reads a handle's frame stream with a recipient's duties: no repeats, no stale frames, reconnect after silence, report
//! gaps (FRM-68, FRM-71, FRM-105, FRM-106).

use super::{FrameSender, seen_ids::SeenIds};
use crate::http::encode_segment;
use crate::{HubClient, Result, event_stream::EventStream, limits};
use chorus_wire::frame::{Frame, FrameFilter, OpenItems};
use chorus_wire::{cursor::Cursor, time::UnixMicros};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;

/// Returns the current time; the command line passes the hub crate's clock, tests pass their own (invariant 10).
pub type NowFn = fn() -> UnixMicros;

/// One item of a frame stream.
#[derive(Clone, Debug)]
pub enum FrameStreamEvent {
    /// The stream is open: from now on no frame is missed.
    Opened(OpenedSession),
    Frame(Box<Frame>, Option<Cursor>),
    /// What was open when the stream began. `more` says that some did not fit; [`HubClient::list_open_items`] has all.
    OpenItems(Box<OpenItems>),
    /// Frames were missed and are no longer available.
    Gap,
}

/// The session that the hub names when it opens a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OpenedSession {
    pub handle: String,
    pub instrument: String,
    pub session: String,
}

pub struct FrameStream {
    stream: EventStream,
    seen_ids: SeenIds,
    now: NowFn,
    /// The stream replays everything the hub keeps, so the first gap is expected.
    from_start: bool,
}

impl HubClient {
    /// Opens the stream of the sender's handle: from now on, or after `since`.
    pub fn open_frame_stream(
        &self,
        sender: &FrameSender,
        filter: &FrameFilter,
        since: Option<Cursor>,
        now: NowFn,
    ) -> FrameStream {
        let handle = &sender.handle;
        let instrument = &sender.instrument;
        let session = &sender.session;
        let mut path =
            format!("/handles/{handle}/stream?instrument={instrument}&session={session}");
        if let Some(tool) = &sender.tool {
            path.push_str(&format!("&tool={tool}"));
        }
        let filter = filter.to_string();
        if !filter.is_empty() {
            path.push_str(&format!("&filter={}", encode_segment(&filter)));
        }
        let stream = self.open_stream(path, since);
        let from_start = since == Some(Cursor::START);
        FrameStream {
            stream,
            seen_ids: SeenIds::new(limits::MAX_SEEN_FRAMES),
            now,
            from_start,
        }
    }

    /// The frames that the hub still keeps for this session, and the stream that continues after them.
    ///
    /// A live stream starts at the newest cursor, so a second stream from the start has caught up when it reaches that
    /// cursor. The newest frame may be for another session; then the replay ends after a silence.
    pub async fn replay_frames(
        &self,
        sender: &FrameSender,
        now: NowFn,
    ) -> Result<(Vec<Frame>, FrameStream)> {
        let mut live = self.open_frame_stream(sender, &FrameFilter::default(), None, now);
        live.wait_opened().await?;
        let newest = live.stream.last_cursor();
        drop(live);
        let mut frames =
            self.open_frame_stream(sender, &FrameFilter::default(), Some(Cursor::START), now);
        let replayed = frames
            .replay_until(newest, limits::REPLAY_QUIET_TIMEOUT)
            .await?;
        Ok((replayed, frames))
    }

    /// The frames that the hub still keeps for this session after `since`, and the newest cursor, which is the next
    /// `since`. Without new frames this takes one short connection.
    pub async fn replay_frames_after(
        &self,
        sender: &FrameSender,
        since: Cursor,
        quiet: Duration,
        now: NowFn,
    ) -> Result<(Vec<Frame>, Option<Cursor>)> {
        let mut live = self.open_frame_stream(sender, &FrameFilter::default(), None, now);
        live.wait_opened().await?;
        let newest = live.stream.last_cursor();
        drop(live);
        if newest.is_none_or(|newest| newest == since) {
            return Ok((Vec::new(), newest));
        }
        let mut frames = self.open_frame_stream(sender, &FrameFilter::default(), Some(since), now);
        Ok((frames.replay_until(newest, quiet).await?, newest))
    }
}

impl FrameStream {
    /// All frames up to `newest`, or until the stream is silent for `quiet`.
    async fn replay_until(
        &mut self,
        newest: Option<Cursor>,
        quiet: Duration,
    ) -> Result<Vec<Frame>> {
        self.wait_opened().await?;
        let mut replayed = Vec::new();
        while !self.has_reached(newest)
            && let Ok(event) = timeout(quiet, self.next()).await
        {
            if let FrameStreamEvent::Frame(frame, _) = event? {
                replayed.push(*frame);
            }
        }
        Ok(replayed)
    }

    /// Whether the stream has reached a cursor of the same frame ring.
    fn has_reached(&self, target: Option<Cursor>) -> bool {
        let (Some(target), Some(since)) = (target, self.stream.last_cursor()) else {
            return false;
        };
        since.epoch == target.epoch && since >= target
    }

    /// Waits until the stream is open. No frame comes before that.
    pub async fn wait_opened(&mut self) -> Result<OpenedSession> {
        loop {
            if let FrameStreamEvent::Opened(session) = self.next().await? {
                return Ok(session);
            }
        }
    }

    /// Whether the stream is open now; false while it reconnects.
    pub fn is_connected(&self) -> bool {
        self.stream.is_connected()
    }

    /// The next item, after as many reconnections as needed. Cancelling the future loses no frame.
    pub async fn next(&mut self) -> Result<FrameStreamEvent> {
        loop {
            let event = self.stream.next().await?;
            match event.name.as_str() {
                "connected" => {
                    return Ok(FrameStreamEvent::Opened(
                        serde_json::from_str(&event.data).unwrap_or_default(),
                    ));
                }
                "open-items" => {
                    if let Ok(open_items) = serde_json::from_str(&event.data) {
                        return Ok(FrameStreamEvent::OpenItems(Box::new(open_items)));
                    }
                }
                "resume-gap" if std::mem::take(&mut self.from_start) => {}
                "resume-gap" => return Ok(FrameStreamEvent::Gap),
                _ => {
                    if let Some(frame) = self.accept_frame(&event.name, &event.data) {
                        return Ok(FrameStreamEvent::Frame(Box::new(frame), event.cursor));
                    }
                }
            }
        }
    }

    fn accept_frame(&mut self, name: &str, data: &str) -> Option<Frame> {
        self.from_start = false;
        let frame = match Frame::parse(data) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::warn!("an event of kind {name} was not understood: {error}");
                return None;
            }
        };
        let is_stale = frame.is_stale_for_receiver((self.now)());
        (self.seen_ids.insert_new(frame.frame_id) && !is_stale).then_some(frame)
    }
}
