//! A streamed answer: a sequence of events with limits on bytes, total time and pauses.

use super::answer::{PostError, WebhookAnswer};
use super::request_slots::RequestSlot;
use chorus_wire::{limits, sse};
use reqwest::Response;
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, timeout_at};

/// The answer to a streaming POST.
#[derive(Debug)]
pub enum StreamedAnswer {
    Whole(WebhookAnswer),
    Events(Box<AnswerEvents>),
}

/// The events of an answer. Dropping it closes the connection and frees the request slot.
#[derive(Debug)]
pub struct AnswerEvents {
    response: Response,
    reader: sse::SseReader,
    ready_events: VecDeque<sse::SseEvent>,
    bytes_left: usize,
    max_pause: Duration,
    deadline: Instant,
    failure: Option<PostError>,
    _slot: RequestSlot,
}

impl AnswerEvents {
    pub(super) fn new(response: Response, slot: RequestSlot, bounds: StreamBounds) -> Self {
        Self {
            response,
            reader: sse::SseReader::new(limits::WEBHOOK_ANSWER_BYTES),
            ready_events: VecDeque::new(),
            bytes_left: bounds.max_bytes,
            max_pause: bounds.max_pause,
            deadline: bounds.deadline,
            failure: None,
            _slot: slot,
        }
    }

    /// The next event; `None` when the receiver has ended the stream properly. After an error,
    /// every call returns the error again.
    pub async fn next_event(&mut self) -> Option<Result<sse::SseEvent, PostError>> {
        loop {
            if let Some(event) = self.ready_events.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failure {
                return Some(Err(error));
            }
            match self.read_chunk().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => self.failure = Some(error),
            }
        }
    }

    /// Reads one chunk; false at the end of the stream.
    async fn read_chunk(&mut self) -> Result<bool, PostError> {
        let read_deadline = self.deadline.min(Instant::now() + self.max_pause);
        let chunk = timeout_at(read_deadline, self.response.chunk())
            .await
            .map_err(|_| PostError::TimedOut)?;
        let Some(chunk) = chunk.map_err(|e| PostError::from_client_error(&e))? else {
            return Ok(false);
        };
        self.bytes_left = self
            .bytes_left
            .checked_sub(chunk.len())
            .ok_or(PostError::TooLarge)?;
        let mut events = Vec::new();
        let outcome = self.reader.read_chunk_into(&chunk, &mut events);
        // Events that were complete before the error are still returned.
        self.ready_events.extend(events);
        outcome.map_err(|error| match error {
            sse::SseReadError::TooLong(_) => PostError::TooLarge,
            sse::SseReadError::NotUtf8 => PostError::Broken,
        })?;
        Ok(true)
    }
}

/// The limits of one streamed answer.
pub(super) struct StreamBounds {
    pub max_bytes: usize,
    pub max_pause: Duration,
    pub deadline: Instant,
}
