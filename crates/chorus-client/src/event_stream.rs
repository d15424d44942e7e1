//! An SSE stream that reconnects: it resumes from its cursor, waits while the hub is unreachable, and skips repeated events.

use crate::{Error, HubClient, Result, backoff, limits};
use chorus_wire::{cursor::Cursor, message::GapEvent, sse};
use reqwest::{Method, header};
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// One event; events come in order and once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEvent {
    pub name: String,
    /// `None` for events that are not part of the log, such as `connected`.
    pub cursor: Option<Cursor>,
    pub data: String,
}

impl StreamEvent {
    /// What a `gap` event says: the hub deleted events before this client came for them.
    pub fn parse_gap(&self) -> Option<GapEvent> {
        if self.name == "gap" {
            serde_json::from_str(&self.data).ok()
        } else {
            None
        }
    }
}

/// A resuming SSE stream. It never ends by itself; dropping it closes the connection.
pub struct EventStream {
    client: HubClient,
    path: String,
    last_cursor: Option<Cursor>,
    /// How long the connection may be silent before it is replaced.
    pub silence_timeout: Duration,
    connection: Option<OpenConnection>,
    pending_events: VecDeque<sse::SseEvent>,
    failures: u32,
    retry: Duration,
    not_before: Option<Instant>,
    /// The reason of the hub's `closing` event, if it sent one.
    close_reason: Option<String>,
}

struct OpenConnection {
    response: reqwest::Response,
    reader: sse::SseReader,
}

impl HubClient {
    /// Opens this agent's inbox after `since`, or from now on without it.
    pub async fn open_inbox(&self, since: Option<Cursor>) -> EventStream {
        let path = self.fetch_paths_or_default().await.inbox;
        self.open_stream(path, since)
    }

    /// Opens this agent's inbox for a process that wakes a live session: the hub tells senders so (D-115).
    pub async fn open_waking_inbox(&self, since: Option<Cursor>) -> EventStream {
        let path = self.fetch_paths_or_default().await.inbox;
        self.open_stream(format!("{path}?reach=wakes"), since)
    }

    /// Opens the operator's event stream.
    pub async fn open_events(&self, since: Option<Cursor>) -> EventStream {
        let path = self.fetch_paths_or_default().await.events;
        self.open_stream(path, since)
    }

    pub fn open_stream(&self, path: impl Into<String>, since: Option<Cursor>) -> EventStream {
        EventStream {
            client: self.clone(),
            path: path.into(),
            last_cursor: since,
            silence_timeout: limits::STREAM_SILENCE_TIMEOUT,
            connection: None,
            pending_events: VecDeque::new(),
            failures: 0,
            retry: Duration::ZERO,
            not_before: None,
            close_reason: None,
        }
    }
}

impl EventStream {
    /// The cursor of the last returned event.
    pub fn last_cursor(&self) -> Option<Cursor> {
        self.last_cursor
    }

    /// Whether there is a connection now; false while it reconnects.
    pub fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// The next event, after as many reconnections as needed. An error is final: the key is no longer valid, or the server
    /// is no hub. Cancelling the future loses no event.
    pub async fn next(&mut self) -> Result<StreamEvent> {
        loop {
            while let Some(event) = self.pending_events.pop_front() {
                if let Some(event) = self.accept_event(event) {
                    return Ok(event);
                }
            }
            match &mut self.connection {
                None => self.reconnect().await?,
                Some(connection) => {
                    match timeout(self.silence_timeout, connection.response.chunk()).await {
                        Ok(Ok(Some(chunk))) => {
                            // Complete events before a parse error are returned first; the reader repeats its error.
                            let mut events = Vec::new();
                            let read = connection.reader.read_chunk_into(&chunk, &mut events);
                            if events.is_empty() {
                                read.map_err(|e| Error::Answer(e.to_string()))?;
                            }
                            self.pending_events.extend(events);
                        }
                        Ok(Ok(None)) => self.on_closed(),
                        Ok(Err(error)) => {
                            let reason = self.client.transport_error(&error).to_string();
                            self.schedule_reconnect(&reason);
                        }
                        Err(_) => self.schedule_reconnect("the stream fell silent"),
                    }
                }
            }
        }
    }

    /// Returns the event unless it is a repeat (invariant 5: an id is a cursor, and ids only grow).
    fn accept_event(&mut self, event: sse::SseEvent) -> Option<StreamEvent> {
        // The connection works, so the backoff starts again.
        self.failures = 0;
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry).min(limits::MAX_RETRY_AFTER);
        }
        // `closing` is about the connection, not an event of the log.
        if event.name == "closing" {
            let closing: serde_json::Value = serde_json::from_str(&event.data).unwrap_or_default();
            self.close_reason = closing["reason"].as_str().map(str::to_owned);
            return None;
        }
        let cursor = event.id.as_deref().and_then(|id| id.parse::<Cursor>().ok());
        // These name the cursor from which the stream continues, so they do not repeat the event at that cursor.
        let is_stream_control = matches!(event.name.as_str(), "connected" | "resume-gap");
        if let Some(cursor) = cursor {
            let is_repeated = self
                .last_cursor
                .is_some_and(|since| cursor.epoch == since.epoch && cursor <= since);
            if is_repeated && !is_stream_control {
                return None;
            }
            self.last_cursor = Some(cursor);
        }
        Some(StreamEvent {
            name: event.name,
            cursor,
            data: event.data,
        })
    }

    fn on_closed(&mut self) {
        match self.close_reason.take() {
            Some(reason) => self.schedule_reconnect(&format!(
                "the hub closed the stream ({})",
                reason.escape_debug()
            )),
            None => self.schedule_reconnect("the hub closed the stream"),
        }
    }

    fn schedule_reconnect(&mut self, reason: &str) {
        self.connection = None;
        self.close_reason = None;
        self.failures += 1;
        let server_delay = self.retry + backoff::add_jitter(self.retry) / 2;
        let wait = self
            .client
            .backoff
            .delay_after(self.failures)
            .max(server_delay);
        self.not_before = Some(Instant::now() + wait);
        tracing::warn!("{reason}; connecting again in {:.1} s", wait.as_secs_f32());
    }

    async fn reconnect(&mut self) -> Result<()> {
        if let Some(at) = self.not_before {
            sleep_until(at).await;
        }
        match self.send_request().await {
            Ok(response) => {
                self.connection = Some(OpenConnection {
                    response,
                    reader: sse::SseReader::new(limits::MAX_EVENT_BYTES),
                });
            }
            Err(error) if error.is_transient() => {
                let retry_after = error
                    .error_response()
                    .and_then(|refusal| refusal.retry_after)
                    .unwrap_or_default();
                self.schedule_reconnect(&error.to_string());
                self.not_before = self.not_before.max(Some(
                    Instant::now() + retry_after.min(limits::MAX_RETRY_AFTER),
                ));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn send_request(&self) -> Result<reqwest::Response> {
        let path = self.client.translate_path(&self.path).await;
        let mut request = self
            .client
            .build_request(Method::GET, &path)
            .header(header::ACCEPT, "text/event-stream");
        if let Some(since) = self.last_cursor {
            request = request.header("Last-Event-ID", since.to_string());
        }
        let timeout_error =
            |_| Error::Transport(format!("{} did not answer", self.client.base_url()));
        let response = timeout(limits::CALL_TIMEOUT, request.send())
            .await
            .map_err(timeout_error)?
            .map_err(|e| self.client.transport_error(&e))?;
        if response.status() != 200 {
            let answer = timeout(limits::CALL_TIMEOUT, self.client.read_response(response))
                .await
                .map_err(timeout_error)??;
            return match answer.require_success() {
                Ok(answer) => Err(Error::Answer(format!(
                    "status {} is not a stream",
                    answer.status
                ))),
                Err(refused) => Err(refused),
            };
        }
        let content_type = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        if !content_type.starts_with("text/event-stream") {
            return Err(Error::Answer("the inbox is not an event stream".into()));
        }
        Ok(response)
    }
}
