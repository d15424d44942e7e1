//! A reader of event streams that keeps every byte it read.

use super::STEP_TIMEOUT;
use crate::support::hub::within;
use chorus_wire::sse;
use reqwest::RequestBuilder;
use serde_json::Value;
use std::collections::VecDeque;

pub struct Stream {
    response: reqwest::Response,
    reader: sse::SseReader,
    waiting: VecDeque<sse::SseEvent>,
    /// Everything that was read, as it came.
    pub raw: Vec<u8>,
}

/// One event, its data as JSON.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub text: String,
    pub data: Value,
}

impl Event {
    #[track_caller]
    pub fn cursor(&self) -> u64 {
        self.id
            .as_deref()
            .expect("an id")
            .parse()
            .expect("a number")
    }

    /// The text of a message.
    pub fn message_text(&self) -> &str {
        self.data["envelope"]["original_text"]
            .as_str()
            .unwrap_or_default()
    }
}

impl Stream {
    pub async fn open(request: RequestBuilder) -> Self {
        let response = within(STEP_TIMEOUT, request.send())
            .await
            .expect("an answer in time")
            .expect("an answer");
        assert_eq!(
            response.status(),
            200,
            "{}",
            response.text().await.unwrap_or_default()
        );
        let kind = response
            .headers()
            .get("content-type")
            .map(|v| v.to_str().unwrap_or_default().to_owned());
        assert!(
            kind.as_deref()
                .unwrap_or_default()
                .starts_with("text/event-stream"),
            "{kind:?}"
        );
        Self {
            response,
            reader: sse::SseReader::new(8 << 20),
            waiting: VecDeque::new(),
            raw: Vec::new(),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.response
            .headers()
            .get(name)
            .map_or("", |value| value.to_str().unwrap_or_default())
    }

    /// The next event of any name; `None` when the stream has ended.
    pub async fn any(&mut self) -> Option<Event> {
        // Bounded as a whole: keepalives would let a wait for each piece begin again for ever.
        within(STEP_TIMEOUT, self.next_event())
            .await
            .expect("an event in time")
    }

    async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                let data = serde_json::from_str(&event.data).unwrap_or(Value::Null);
                return Some(Event {
                    name: event.name,
                    id: event.id,
                    text: event.data,
                    data,
                });
            }
            let chunk = self.response.chunk().await;
            // A connection that is cut has ended like one that is closed.
            let Ok(Some(chunk)) = chunk else { return None };
            self.raw.extend_from_slice(&chunk);
            self.waiting.extend(
                self.reader
                    .read_chunk(&chunk)
                    .expect("a well-formed stream"),
            );
        }
    }

    /// The next event, which must be called `name`.
    #[track_caller]
    pub fn next(&mut self, name: &'static str) -> impl Future<Output = Event> {
        let place = std::panic::Location::caller();
        async move {
            let event = self
                .any()
                .await
                .unwrap_or_else(|| panic!("the stream ended before {name} at {place}"));
            assert_eq!(event.name, name, "{event:?} at {place}");
            event
        }
    }

    /// The next `count` messages, by their texts.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(self.next("message").await.message_text().to_owned());
        }
        texts
    }

    /// Waits for the end and returns what came before it.
    pub async fn ended(&mut self) -> Vec<Event> {
        let mut last = Vec::new();
        while let Some(event) = self.any().await {
            last.push(event);
        }
        last
    }

    /// Reads until the next chunk, whatever is in it.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let chunk = within(STEP_TIMEOUT, self.response.chunk())
            .await
            .expect("a chunk in time")
            .ok()??;
        self.raw.extend_from_slice(&chunk);
        Some(chunk.to_vec())
    }
}
