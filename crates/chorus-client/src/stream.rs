//! A stream of events that outlives its connections: it resumes by cursor, waits out a hub that is away, and repeats nothing.

use crate::{Client, Error, Result, backoff, limits};
use chorus_wire::{cursor::Cursor, sse};
use reqwest::{Method, header};
use std::{collections::VecDeque, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// One event, in order and once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    /// None for events that are not part of the log, such as `connected`.
    pub cursor: Option<Cursor>,
    pub data: String,
}

/// Never ends by itself; dropping it closes the connection.
pub struct Stream {
    client: Client,
    path: String,
    since: Option<Cursor>,
    /// How long nothing at all may come before the connection is given up.
    pub silence: Duration,
    open: Option<Open>,
    ready: VecDeque<sse::Event>,
    failures: u32,
    retry: Duration,
    not_before: Option<Instant>,
    /// Why the hub is about to close, where it said so.
    farewell: Option<String>,
}

struct Open {
    response: reqwest::Response,
    reader: sse::Reader,
}

impl Client {
    /// This agent's inbox, from after `since`, or from now on without it.
    pub async fn inbox(&self, since: Option<Cursor>) -> Stream {
        let path = self.paths_or_default().await.inbox;
        self.stream(path, since)
    }

    /// The operator's live view of what happens.
    pub async fn events(&self, since: Option<Cursor>) -> Stream {
        let path = self.paths_or_default().await.events;
        self.stream(path, since)
    }

    pub fn stream(&self, path: impl Into<String>, since: Option<Cursor>) -> Stream {
        Stream {
            client: self.clone(),
            path: path.into(),
            since,
            silence: limits::SILENCE,
            open: None,
            ready: VecDeque::new(),
            failures: 0,
            retry: Duration::ZERO,
            not_before: None,
            farewell: None,
        }
    }
}

impl Stream {
    /// Where it is: the cursor of the last event that was handed out.
    pub fn since(&self) -> Option<Cursor> {
        self.since
    }

    /// The next event, after as many reconnections as it takes. An error is final: the key is no longer valid, or the other
    /// side is no hub. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Result<Event> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(event) = self.fresh(event) {
                    return Ok(event);
                }
            }
            match &mut self.open {
                None => self.connect().await?,
                Some(open) => match timeout(self.silence, open.response.chunk()).await {
                    Ok(Ok(Some(chunk))) => {
                        // What was whole before a fault is handed out first; the reader says the fault again.
                        let mut events = Vec::new();
                        let read = open.reader.read_into(&chunk, &mut events);
                        if events.is_empty() {
                            read.map_err(|e| Error::Answer(e.to_string()))?;
                        }
                        self.ready.extend(events);
                    }
                    Ok(Ok(None)) => self.closed(),
                    Ok(Err(error)) => {
                        let why = self.client.broken(&error).to_string();
                        self.lost(&why);
                    }
                    Err(_) => self.lost("the stream fell silent"),
                },
            }
        }
    }

    /// The event, unless it came before (law 5: ids only grow).
    fn fresh(&mut self, event: sse::Event) -> Option<Event> {
        // Something was heard on this connection: the next failure is a first one.
        self.failures = 0;
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry).min(limits::PATIENCE);
        }
        // It is about the connection, and nothing that anybody said.
        if event.name == "closing" {
            let said: serde_json::Value = serde_json::from_str(&event.data).unwrap_or_default();
            self.farewell = said["reason"].as_str().map(str::to_owned);
            return None;
        }
        let cursor = event.id.as_deref().and_then(|id| id.parse::<Cursor>().ok());
        // These say where the stream goes on, which is no repeat of what came at that place.
        let about_the_stream = matches!(event.name.as_str(), "connected" | "resume-gap");
        if let Some(cursor) = cursor {
            let heard = self
                .since
                .is_some_and(|since| cursor.epoch == since.epoch && cursor <= since);
            if heard && !about_the_stream {
                return None;
            }
            self.since = Some(cursor);
        }
        Some(Event {
            name: event.name,
            cursor,
            data: event.data,
        })
    }

    fn closed(&mut self) {
        match self.farewell.take() {
            Some(reason) => self.lost(&format!(
                "the hub closed the stream ({})",
                reason.escape_debug()
            )),
            None => self.lost("the hub closed the stream"),
        }
    }

    fn lost(&mut self, why: &str) {
        (self.open, self.farewell) = (None, None);
        self.failures += 1;
        let asked = self.retry + backoff::jitter(self.retry) / 2;
        let wait = self.client.backoff.wait(self.failures).max(asked);
        self.not_before = Some(Instant::now() + wait);
        tracing::warn!("{why}; connecting again in {:.1} s", wait.as_secs_f32());
    }

    async fn connect(&mut self) -> Result<()> {
        if let Some(at) = self.not_before {
            sleep_until(at).await;
        }
        match self.open_once().await {
            Ok(response) => {
                self.open = Some(Open {
                    response,
                    reader: sse::Reader::new(limits::EVENT_BYTES),
                });
            }
            Err(error) if error.passes() => {
                let asked = error
                    .refusal()
                    .and_then(|refusal| refusal.retry_after)
                    .unwrap_or_default();
                self.lost(&error.to_string());
                self.not_before = self
                    .not_before
                    .max(Some(Instant::now() + asked.min(limits::PATIENCE)));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn open_once(&self) -> Result<reqwest::Response> {
        let mut request = self
            .client
            .request(Method::GET, &self.path)
            .header(header::ACCEPT, "text/event-stream");
        if let Some(since) = self.since {
            request = request.header("Last-Event-ID", since.to_string());
        }
        let late = |_| Error::Transport(format!("{} did not answer", self.client.base()));
        let response = timeout(limits::CALL, request.send())
            .await
            .map_err(late)?
            .map_err(|e| self.client.broken(&e))?;
        if response.status() != 200 {
            let answer = timeout(limits::CALL, self.client.read(response))
                .await
                .map_err(late)??;
            return match answer.accepted() {
                Ok(answer) => Err(Error::Answer(format!(
                    "status {} is not a stream",
                    answer.status
                ))),
                Err(refused) => Err(refused),
            };
        }
        let kind = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(Error::Answer("the inbox is not an event stream".into()));
        }
        Ok(response)
    }
}
