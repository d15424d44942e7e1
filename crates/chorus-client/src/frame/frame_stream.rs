//! Hearing a handle's stream with the duties of a recipient: once, not stale, re-opened when silent, gaps said aloud
//! (FRM-68, FRM-71, FRM-105, FRM-106).

use super::{FrameSender, seen_ids::SeenIds};
use crate::http::encode_segment;
use crate::{HubClient, Result, event_stream::EventStream, limits};
use chorus_wire::frame::{Frame, FrameFilter};
use chorus_wire::{cursor::Cursor, time::UnixMicros};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;

/// Tells the time; the command line passes the hub crate's clock, tests their own (law 10).
pub type NowFn = fn() -> UnixMicros;

/// What a stream brings.
#[derive(Clone, Debug)]
pub enum FrameStreamEvent {
    /// It is open: from here on nothing is missed.
    Opened(OpenedSession),
    Frame(Box<Frame>, Option<Cursor>),
    /// Frames were missed, and cannot be had again.
    Gap,
}

/// What the hub says of a stream it opened.
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
    /// The hub was asked for all that it keeps, so the first gap is no news.
    from_start: bool,
}

impl HubClient {
    /// The stream of the speaker's handle: from now on, or after `since`.
    pub async fn open_frame_stream(
        &self,
        sender: &FrameSender,
        filter: &FrameFilter,
        since: Option<Cursor>,
        now: NowFn,
    ) -> FrameStream {
        let handles = self.fetch_paths_or_default().await.handles;
        let (handle, instrument, session) = (&sender.handle, &sender.instrument, &sender.session);
        let mut path =
            format!("{handles}/{handle}/stream?instrument={instrument}&session={session}");
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

    /// What the hub still keeps for this session, and the stream that goes on after it.
    ///
    /// A stream from now on begins at the newest frame, so a second one from the start has caught up when it gets there. The
    /// newest may be for another session; then the replay is over when nothing more comes.
    pub async fn replay_frames(
        &self,
        sender: &FrameSender,
        now: NowFn,
    ) -> Result<(Vec<Frame>, FrameStream)> {
        let mut live = self
            .open_frame_stream(sender, &FrameFilter::default(), None, now)
            .await;
        live.wait_opened().await?;
        let newest = live.stream.last_cursor();
        drop(live);
        let mut frames = self
            .open_frame_stream(sender, &FrameFilter::default(), Some(Cursor::START), now)
            .await;
        let replayed = frames
            .replay_until(newest, limits::REPLAY_QUIET_TIMEOUT)
            .await?;
        Ok((replayed, frames))
    }

    /// What the hub still keeps for this session after `since`, and the newest place: the `since` of the next time. Where
    /// nothing is new there is one short connection.
    pub async fn replay_frames_after(
        &self,
        sender: &FrameSender,
        since: Cursor,
        quiet: Duration,
        now: NowFn,
    ) -> Result<(Vec<Frame>, Option<Cursor>)> {
        let mut live = self
            .open_frame_stream(sender, &FrameFilter::default(), None, now)
            .await;
        live.wait_opened().await?;
        let newest = live.stream.last_cursor();
        drop(live);
        if newest.is_none_or(|newest| newest == since) {
            return Ok((Vec::new(), newest));
        }
        let mut frames = self
            .open_frame_stream(sender, &FrameFilter::default(), Some(since), now)
            .await;
        Ok((frames.replay_until(newest, quiet).await?, newest))
    }
}

impl FrameStream {
    /// Everything up to `newest`, or until nothing has come for `quiet`.
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

    /// Whether everything up to a place of the same ring has come.
    fn has_reached(&self, target: Option<Cursor>) -> bool {
        let (Some(target), Some(since)) = (target, self.stream.last_cursor()) else {
            return false;
        };
        since.epoch == target.epoch && since >= target
    }

    /// Waits until the stream is open. Nothing comes before that.
    pub async fn wait_opened(&mut self) -> Result<OpenedSession> {
        loop {
            if let FrameStreamEvent::Opened(listening) = self.next().await? {
                return Ok(listening);
            }
        }
    }

    /// The next frame, however often the connection has to be opened again. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Result<FrameStreamEvent> {
        loop {
            let event = self.stream.next().await?;
            match event.name.as_str() {
                "connected" => {
                    return Ok(FrameStreamEvent::Opened(
                        serde_json::from_str(&event.data).unwrap_or_default(),
                    ));
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
        let is_stale = frame.stale_at().is_some_and(|at| at < (self.now)());
        (self.seen_ids.insert_new(frame.frame_id) && !is_stale).then_some(frame)
    }
}
