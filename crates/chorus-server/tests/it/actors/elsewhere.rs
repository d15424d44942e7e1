//! What stories of deliveries have in common: a room and its owner, members somewhere else, and what they post back.

use super::{Agent, Answer, Reply, Webhook, rows};
use crate::hub::Hub;
use serde_json::{Value, json};

/// A room as its owner has it.
pub struct Room {
    pub id: String,
    pub owner: Agent,
}

impl Room {
    /// Made by an agent of this name.
    pub async fn of(hub: &Hub, owner: &str) -> Self {
        let owner = hub.agent(owner).await;
        let new =
            json!({"name": "ops-team", "service": "Chorus", "context": "Where the team talks."});
        let made = owner.post("/channels", &new).await.data(201);
        Self {
            id: made["id"].as_str().expect("an id").to_owned(),
            owner,
        }
    }

    /// The same after the hub has moved to another port.
    pub fn again(&self, hub: &Hub) -> Self {
        Self {
            id: self.id.clone(),
            owner: hub.again(&self.owner),
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/channels/{}{rest}", self.id)
    }

    /// Lets somebody in by a connection string.
    pub async fn add(&self, name: &str, url: &str) {
        self.add_like(&json!({"name": name, "connection": url}))
            .await;
    }

    pub async fn add_like(&self, member: &Value) -> Value {
        self.owner
            .post(&self.path("/members"), member)
            .await
            .data(201)
    }

    /// Lets an agent of this hub in.
    pub async fn invite(&self, agent: &Agent) {
        self.add_like(&json!({"agent_id": agent.id})).await;
    }

    /// A person's word: the line that it became.
    pub async fn says(&self, text: &str) -> Value {
        self.owner
            .post(&self.path("/messages"), &json!({"content": text}))
            .await
            .data(201)
    }

    /// Everything said and done.
    pub async fn history(&self) -> Vec<Value> {
        rows(
            self.owner
                .get(&self.path("/messages?limit=1000"))
                .await
                .data(200),
        )
    }

    /// The texts of what was said.
    pub async fn said(&self) -> Vec<String> {
        let rows = self.history().await;
        let said = rows.iter().filter(|row| row["type"] == "message");
        said.map(|row| row["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// What became of members: `name change`.
    pub async fn changes(&self) -> Vec<String> {
        let rows = self.history().await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let changes = rows.iter().filter(|row| row["type"] == "member");
        changes
            .map(|row| format!("{} {}", text(&row["name"]), text(&row["change"])))
            .collect()
    }

    pub async fn member(&self, name: &str) -> Value {
        let roster = rows(self.owner.get(&self.path("/members")).await.data(200));
        roster
            .into_iter()
            .find(|member| member["name"] == name)
            .unwrap_or(Value::Null)
    }
}

/// An agent somewhere else: what is delivered to it, and what it posts back.
pub struct Elsewhere {
    pub endpoint: Webhook,
    http: reqwest::Client,
}

impl Elsewhere {
    /// Takes everything.
    pub async fn well(hub: &Hub) -> Self {
        Self::that(hub, |_| Reply::typed(200, "text/plain", "")).await
    }

    pub async fn that(hub: &Hub, script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            endpoint: Webhook::script(script).await,
            http: hub.http.clone(),
        }
    }

    /// A connection string.
    pub fn url(&self) -> String {
        format!(
            "http://127.0.0.1:{}/inbox/sk_a1b2c3d4e5f6",
            self.endpoint.port()
        )
    }

    /// The next delivery.
    pub async fn hears(&mut self) -> Value {
        self.endpoint.hears().await.json()
    }

    /// The next deliveries, by what they say.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(
                self.hears().await["message"]["content"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        texts
    }

    /// Says something in answer to a delivery.
    pub async fn answers(&self, delivery: &Value, text: &str) {
        let answer = self
            .posts(delivery, &json!({"type": "message", "content": text}))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Posts an event to the callback of a delivery.
    pub async fn posts(&self, delivery: &Value, event: &Value) -> Answer {
        Answer::of(self.http.post(callback(delivery)).json(event)).await
    }
}

/// Where the answer to a delivery goes.
#[track_caller]
pub fn callback(delivery: &Value) -> &str {
    delivery["callback"].as_str().expect("a callback")
}
