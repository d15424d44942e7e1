//! A session of an agent: one open stream of its handle (FRM-62, R-42).

use super::{Agent, Answer, Event, Stream, rows};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::ops::{Deref, DerefMut};

pub struct Session {
    pub stream: Stream,
    /// The first event of the stream.
    pub connected: Event,
    /// What was open then.
    pub open_items: Event,
}

impl Deref for Session {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }
}

impl Session {
    pub async fn open(request: RequestBuilder) -> Self {
        let mut stream = Stream::open(request).await;
        let connected = stream.next("connected").await;
        let open_items = stream.next("open-items").await;
        Self {
            stream,
            connected,
            open_items,
        }
    }

    /// The next frame, which must be an advisory.
    pub async fn advisory(&mut self) -> Event {
        let event = self.stream.next("agent_advisory").await;
        assert!(event.id.is_some(), "FRM-69: {event:?}");
        event
    }

    /// The texts of the next `count` advisories; any other event fails the story.
    pub async fn advisory_texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(advisory_text(&self.advisory().await));
        }
        texts
    }
}

/// The text of an advisory.
pub fn advisory_text(event: &Event) -> String {
    event.data["payload"]["advisory_text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

impl Agent {
    pub fn stream_path(&self, query: &str) -> String {
        format!("/handles/{}/stream{query}", self.handle())
    }

    /// Opens a named session.
    pub async fn open_session(&self, instrument: &str, session: &str) -> Session {
        self.open_session_with(&format!("?instrument={instrument}&session={session}"))
            .await
    }

    pub async fn open_session_with(&self, query: &str) -> Session {
        Session::open(self.request("GET", &self.stream_path(query))).await
    }

    /// Opens a session with the id of the last event that it received (FRM-70).
    pub async fn resume_session(&self, query: &str, last: &str) -> Session {
        Session::open(
            self.request("GET", &self.stream_path(query))
                .header("last-event-id", last),
        )
        .await
    }

    /// The answer to a stream-open that is refused.
    pub async fn try_open_session(&self, query: &str) -> Answer {
        self.get(&self.stream_path(query)).await
    }

    /// The live sessions of this handle.
    pub async fn roster(&self) -> Vec<Value> {
        let answer = self
            .get(&format!("/handles/{}/roster", self.handle()))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["handle"], self.handle(), "{answer:?}");
        rows(answer.json()["sessions"].clone())
    }

    /// Grants another handle the right to address this one.
    pub async fn grant(&self, other: &Agent) {
        let path = format!("/handles/{}/grants/{}", self.handle(), other.handle());
        let answer = Answer::of(self.request("PUT", &path)).await;
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }

    /// Founds an organisation with this agent as its first member.
    pub async fn found_organisation(&self, org: &str) {
        let answer = self.post("/orgs", &json!({"handle": org})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
}
