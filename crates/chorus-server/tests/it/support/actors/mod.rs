//! The actors of the stories: anonymous clients, agents and operators, each with only its own credentials.

mod answer;
pub mod channel;
pub mod collector;
pub mod database;
pub mod database_proxy;
mod frame;
pub mod market;
pub mod remote_member;
mod session;
mod stream;
mod webhook;
mod write_fault;

pub use answer::Answer;
pub use frame::{NOW, frame, frame_id, scope_recipient};
pub use session::{Session, advisory_text};
pub use stream::{Event, Stream};
pub use webhook::{ReceivedRequest, Reply, Webhook};
pub use write_fault::WriteFault;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::ops::Deref;
use std::time::Duration;

/// How long one step may take before a story fails instead of hanging.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// One HTTP client with at most one key.
#[derive(Clone)]
pub struct Caller {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

impl Caller {
    pub fn new(http: &reqwest::Client, base: &str, key: Option<&str>) -> Self {
        Self {
            http: http.clone(),
            base: base.to_owned(),
            key: key.map(str::to_owned),
        }
    }

    pub fn with_key(&self, key: &str) -> Self {
        Self::new(&self.http, &self.base, Some(key))
    }

    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request("GET", path)).await
    }

    pub async fn get_as(&self, accept: &str, path: &str) -> Answer {
        Answer::of(self.request("GET", path).header("accept", accept)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request("DELETE", path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request("POST", path).json(body)).await
    }

    /// A body that is not JSON, or not as a library would write it.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self
            .request("POST", path)
            .header("content-type", "application/json");
        Answer::of(request.body(body)).await
    }

    /// A stream on `path`; any status but 200 fails the story.
    pub async fn stream(&self, path: &str) -> Stream {
        Stream::open(self.request("GET", path)).await
    }
}

/// A client without a key.
pub struct AnonymousClient(pub Caller);

impl AnonymousClient {
    pub async fn register(&self, agent_id: &str) -> Answer {
        self.post("/register", &registration(agent_id)).await
    }
}

impl Deref for AnonymousClient {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

/// An operator of the hub.
pub struct Operator(pub Caller);

impl Deref for Operator {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl Operator {
    /// Makes a registration code.
    pub async fn invite(&self, body: &Value) -> Value {
        let answer = self.post("/invites", body).await;
        assert!(answer.status == 200 || answer.status == 201, "{answer:?}");
        answer.json()["data"].clone()
    }

    pub async fn activity(&self, since: u64) -> Vec<Value> {
        rows(
            self.get(&format!("/activity?since={since}"))
                .await
                .data(200),
        )
    }
}

/// A registered agent with its key.
#[derive(Clone)]
pub struct Agent {
    pub id: String,
    pub key: String,
    caller: Caller,
}

impl Deref for Agent {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Agent {
    pub fn new(caller: &Caller, id: &str, key: &str) -> Self {
        Self {
            id: id.to_owned(),
            key: key.to_owned(),
            caller: caller.with_key(key),
        }
    }

    /// The same agent with the key that a rotation gave it.
    pub fn with_rotated_key(&self, key: &str) -> Self {
        Self::new(&self.caller, &self.id, key)
    }

    pub fn envelope(&self, text: &str) -> Value {
        envelope(&self.id, text)
    }

    pub fn message(&self, to: &str, text: &str) -> Value {
        json!({"receiver_id": to, "envelope": self.envelope(text)})
    }

    pub async fn send(&self, to: &str, text: &str) -> Answer {
        self.post("/messages", &self.message(to, text)).await
    }

    /// Sends and returns `data`; the outcome must be `delivery`.
    #[track_caller]
    pub fn send_expecting(
        &self,
        to: &str,
        text: &str,
        delivery: &'static str,
    ) -> impl Future<Output = Value> {
        let sending = Answer::of(
            self.request("POST", "/messages")
                .json(&self.message(to, text)),
        );
        let place = std::panic::Location::caller();
        async move {
            let answer = sending.await;
            let data = answer.json()["data"].clone();
            assert_eq!(data["delivery"], delivery, "{answer:?} at {place}");
            data
        }
    }

    pub async fn send_once(&self, key: &str, body: &Value) -> Answer {
        Answer::of(
            self.request("POST", "/messages")
                .header("idempotency-key", key)
                .json(body),
        )
        .await
    }

    /// My inbox from now on.
    pub async fn inbox(&self) -> Stream {
        let mut stream = self.stream("/agent/inbox").await;
        stream.next("connected").await;
        stream
    }

    /// My inbox after `cursor`.
    pub async fn inbox_after(&self, cursor: &str) -> Stream {
        let request = self
            .request("GET", "/agent/inbox")
            .header("last-event-id", cursor);
        let mut stream = Stream::open(request).await;
        stream.next("connected").await;
        stream
    }

    pub async fn history(&self, query: &str) -> Vec<Value> {
        rows(self.get(&format!("/agent/messages{query}")).await.data(200))
    }

    /// My whole history, page by page; a page that does not go on from the last one fails the story.
    pub async fn whole_history(&self, page: usize) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        let mut since = 0;
        loop {
            let rows = self.history(&format!("?since={since}&limit={page}")).await;
            let Some(last) = rows.last() else { return all };
            let first = rows[0]["id"].as_u64().unwrap();
            assert!(first > since, "a page after {since} starts with {first}");
            since = last["id"].as_u64().unwrap();
            all.extend(rows);
        }
    }

    pub async fn delivery_status(&self, trace_id: &Value) -> Value {
        self.get(&format!("/messages/{}", trace_id.as_str().unwrap()))
            .await
            .data(200)
    }

    /// Says that the text of a message was shown.
    pub async fn mark_shown(&self, trace_id: &Value) -> Answer {
        self.post(
            &format!("/agent/messages/{}/shown", trace_id.as_str().unwrap()),
            &json!({}),
        )
        .await
    }

    pub async fn respond(&self, trace_id: &Value, reply: &Value) -> Answer {
        self.post(
            &format!("/agent/messages/{}/response", trace_id.as_str().unwrap()),
            reply,
        )
        .await
    }
}

/// A plain registration, as the quick start prints it.
pub fn registration(agent_id: &str) -> Value {
    json!({
        "agent_id": agent_id,
        "agent_card": {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]},
    })
}

pub fn envelope(sender: &str, text: &str) -> Value {
    json!({"chorus_version": "0.4", "sender_id": sender, "original_text": text, "sender_culture": "en"})
}

/// A list, or the story fails.
#[track_caller]
pub fn rows(value: Value) -> Vec<Value> {
    let Value::Array(rows) = value else {
        panic!("not a list: {value}")
    };
    rows
}

/// The texts of history rows or message events, in order.
pub fn texts<'a>(rows: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    rows.into_iter()
        .map(|row| {
            row["envelope"]["original_text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}
