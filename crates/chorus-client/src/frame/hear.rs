//! Hearing a handle's stream with the duties of a recipient: once, not stale, re-opened when silent, gaps said aloud
//! (FRM-68, FRM-71, FRM-105, FRM-106).

use super::{Speaker, seen::Seen};
use crate::http::segment;
use crate::{Client, Result, limits, stream::Stream};
use chorus_wire::frame::{Filter, Frame};
use chorus_wire::{cursor::Cursor, time::Micros};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;

/// Tells the time; the command line passes the hub crate's clock, tests their own (law 10).
pub type Now = fn() -> Micros;

/// What a stream brings.
#[derive(Clone, Debug)]
pub enum Heard {
    /// It is open: from here on nothing is missed.
    Opened(Listening),
    Frame(Box<Frame>, Option<Cursor>),
    /// Frames were missed, and cannot be had again.
    Gap,
}

/// What the hub says of a stream it opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Listening {
    pub handle: String,
    pub instrument: String,
    pub session: String,
}

pub struct Frames {
    stream: Stream,
    seen: Seen,
    now: Now,
    /// The hub was asked for all that it keeps, so the first gap is no news.
    from_start: bool,
}

impl Client {
    /// The stream of the speaker's handle: from now on, or after `since`.
    pub async fn frames(
        &self,
        speaker: &Speaker,
        filter: &Filter,
        since: Option<Cursor>,
        now: Now,
    ) -> Frames {
        let handles = self.paths_or_default().await.handles;
        let (handle, instrument, session) =
            (&speaker.handle, &speaker.instrument, &speaker.session);
        let mut path =
            format!("{handles}/{handle}/stream?instrument={instrument}&session={session}");
        if let Some(tool) = &speaker.tool {
            path.push_str(&format!("&tool={tool}"));
        }
        let filter = filter.to_string();
        if !filter.is_empty() {
            path.push_str(&format!("&filter={}", segment(&filter)));
        }
        let stream = self.stream(path, since);
        let from_start = since == Some(Cursor::START);
        Frames {
            stream,
            seen: Seen::new(limits::FRAMES_SEEN),
            now,
            from_start,
        }
    }

    /// What the hub still keeps for this session, and the stream that goes on after it.
    ///
    /// A stream from now on begins at the newest frame, so a second one from the start has caught up when it gets there. The
    /// newest may be for another session; then the replay is over when nothing more comes.
    pub async fn kept(&self, speaker: &Speaker, now: Now) -> Result<(Vec<Frame>, Frames)> {
        let mut live = self.frames(speaker, &Filter::default(), None, now).await;
        live.opened().await?;
        let newest = live.stream.since();
        drop(live);
        let mut frames = self
            .frames(speaker, &Filter::default(), Some(Cursor::START), now)
            .await;
        let kept = frames.replay(newest, limits::REPLAY_QUIET).await?;
        Ok((kept, frames))
    }

    /// What the hub still keeps for this session after `since`, and the newest place: the `since` of the next time. Where
    /// nothing is new there is one short connection.
    pub async fn kept_after(
        &self,
        speaker: &Speaker,
        since: Cursor,
        quiet: Duration,
        now: Now,
    ) -> Result<(Vec<Frame>, Option<Cursor>)> {
        let mut live = self.frames(speaker, &Filter::default(), None, now).await;
        live.opened().await?;
        let newest = live.stream.since();
        drop(live);
        if newest.is_none_or(|newest| newest == since) {
            return Ok((Vec::new(), newest));
        }
        let mut frames = self
            .frames(speaker, &Filter::default(), Some(since), now)
            .await;
        Ok((frames.replay(newest, quiet).await?, newest))
    }
}

impl Frames {
    /// Everything up to `newest`, or until nothing has come for `quiet`.
    async fn replay(&mut self, newest: Option<Cursor>, quiet: Duration) -> Result<Vec<Frame>> {
        self.opened().await?;
        let mut kept = Vec::new();
        while !self.reached(newest)
            && let Ok(heard) = timeout(quiet, self.next()).await
        {
            if let Heard::Frame(frame, _) = heard? {
                kept.push(*frame);
            }
        }
        Ok(kept)
    }

    /// Whether everything up to a place of the same ring has come.
    fn reached(&self, place: Option<Cursor>) -> bool {
        let (Some(place), Some(since)) = (place, self.stream.since()) else {
            return false;
        };
        since.epoch == place.epoch && since >= place
    }

    /// Waits until the stream is open. Nothing comes before that.
    pub async fn opened(&mut self) -> Result<Listening> {
        loop {
            if let Heard::Opened(listening) = self.next().await? {
                return Ok(listening);
            }
        }
    }

    /// The next frame, however often the connection has to be opened again. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Result<Heard> {
        loop {
            let event = self.stream.next().await?;
            match event.name.as_str() {
                "connected" => {
                    return Ok(Heard::Opened(
                        serde_json::from_str(&event.data).unwrap_or_default(),
                    ));
                }
                "resume-gap" if std::mem::take(&mut self.from_start) => {}
                "resume-gap" => return Ok(Heard::Gap),
                _ => {
                    if let Some(frame) = self.fresh(&event.name, &event.data) {
                        return Ok(Heard::Frame(Box::new(frame), event.cursor));
                    }
                }
            }
        }
    }

    fn fresh(&mut self, name: &str, data: &str) -> Option<Frame> {
        self.from_start = false;
        let frame = match Frame::parse(data) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::warn!("an event of kind {name} was not understood: {error}");
                return None;
            }
        };
        let stale = frame.stale_at().is_some_and(|at| at < (self.now)());
        (self.seen.first(frame.frame_id) && !stale).then_some(frame)
    }
}
