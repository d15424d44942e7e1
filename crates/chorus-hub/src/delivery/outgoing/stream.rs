//! An answer that comes as events: bounded in bytes, in time, and in how long it may pause.

use super::answer::{Answer, PostError};
use super::slots::Slot;
use chorus_wire::{limits, sse};
use reqwest::Response;
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, timeout_at};

/// What a streaming POST is answered with.
#[derive(Debug)]
pub enum StreamedAnswer {
    Whole(Answer),
    Events(Box<Events>),
}

/// The events of an answer. Dropping it closes the connection and gives its slot back.
#[derive(Debug)]
pub struct Events {
    response: Response,
    reader: sse::Reader,
    ready: VecDeque<sse::Event>,
    bytes_left: usize,
    pause: Duration,
    end: Instant,
    failed: Option<PostError>,
    _slot: Slot,
}

impl Events {
    pub(super) fn new(response: Response, slot: Slot, bounds: Bounds) -> Self {
        Self {
            response,
            reader: sse::Reader::new(limits::WEBHOOK_ANSWER_BYTES),
            ready: VecDeque::new(),
            bytes_left: bounds.bytes,
            pause: bounds.pause,
            end: bounds.end,
            failed: None,
            _slot: slot,
        }
    }

    /// The next event; `None` when the receiver has ended the stream in good order. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<sse::Event, PostError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(why) = self.failed {
                return Some(Err(why));
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => self.failed = Some(why),
            }
        }
    }

    /// Reads one chunk; false at the end.
    async fn read(&mut self) -> Result<bool, PostError> {
        let by = self.end.min(Instant::now() + self.pause);
        let chunk = timeout_at(by, self.response.chunk())
            .await
            .map_err(|_| PostError::TimedOut)?;
        let Some(chunk) = chunk.map_err(|e| PostError::of(&e))? else {
            return Ok(false);
        };
        self.bytes_left = self
            .bytes_left
            .checked_sub(chunk.len())
            .ok_or(PostError::TooLarge)?;
        let mut events = Vec::new();
        let read = self.reader.read_into(&chunk, &mut events);
        // What was complete before a fault is still heard.
        self.ready.extend(events);
        read.map_err(|why| match why {
            sse::ReadError::TooLong(_) => PostError::TooLarge,
            sse::ReadError::NotUtf8 => PostError::Broken,
        })?;
        Ok(true)
    }
}

/// How much and how long.
pub(super) struct Bounds {
    pub bytes: usize,
    pub pause: Duration,
    pub end: Instant,
}
