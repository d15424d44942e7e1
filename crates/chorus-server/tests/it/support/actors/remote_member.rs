//! Helpers for delivery stories: a channel with its owner, and remote members that receive deliveries and post callbacks.

use super::{Agent, Answer, Reply, Webhook, rows};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// A channel and the agent that owns it.
pub struct OwnedChannel {
    pub id: String,
    pub owner: Agent,
}

impl OwnedChannel {
    /// Created by an agent of this name.
    pub async fn create(hub: &Hub, owner: &str) -> Self {
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
    pub fn reconnect(&self, hub: &Hub) -> Self {
        Self {
            id: self.id.clone(),
            owner: hub.reconnect(&self.owner),
        }
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/channels/{}{rest}", self.id)
    }

    /// Adds a remote member by connection string.
    pub async fn add_remote(&self, name: &str, url: &str) {
        self.add_member(&json!({"name": name, "connection": url}))
            .await;
    }

    pub async fn add_member(&self, member: &Value) -> Value {
        self.owner
            .post(&self.path("/members"), member)
            .await
            .data(201)
    }

    /// Adds an agent of this hub.
    pub async fn add_agent(&self, agent: &Agent) {
        let invited = self.add_member(&json!({"agent_id": agent.id})).await;
        super::channel::accept_invitation(&self.path(""), agent, &invited).await;
    }

    /// Posts a message of the owner and returns its line.
    pub async fn post_message(&self, text: &str) -> Value {
        self.owner
            .post(&self.path("/messages"), &json!({"content": text}))
            .await
            .data(201)
    }

    /// All lines of the channel.
    pub async fn history(&self) -> Vec<Value> {
        rows(
            self.owner
                .get(&self.path("/messages?limit=1000"))
                .await
                .data(200),
        )
    }

    /// The texts of the messages.
    pub async fn message_texts(&self) -> Vec<String> {
        let rows = self.history().await;
        let said = rows.iter().filter(|row| row["type"] == "message");
        said.map(|row| row["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Changes of members as `name change`.
    pub async fn member_changes(&self) -> Vec<String> {
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

/// A remote agent: receives deliveries and posts callbacks.
pub struct RemoteMember {
    pub endpoint: Webhook,
    http: reqwest::Client,
}

impl RemoteMember {
    /// Accepts every delivery.
    pub async fn accepting(hub: &Hub) -> Self {
        Self::scripted(hub, |_| Reply::typed(200, "text/plain", "")).await
    }

    pub async fn scripted(
        hub: &Hub,
        script: impl Fn(usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
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
    pub async fn next_delivery(&mut self) -> Value {
        self.endpoint.next_request().await.json()
    }

    /// The texts of the next deliveries.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            texts.push(
                self.next_delivery().await["message"]["content"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
        texts
    }

    /// Posts a message to the callback of a delivery.
    pub async fn post_answer(&self, delivery: &Value, text: &str) {
        let answer = self
            .post_event(delivery, &json!({"type": "message", "content": text}))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Posts an event to the callback of a delivery.
    pub async fn post_event(&self, delivery: &Value, event: &Value) -> Answer {
        Answer::of(self.http.post(callback(delivery)).json(event)).await
    }
}

/// The callback URL of a delivery.
#[track_caller]
pub fn callback(delivery: &Value) -> &str {
    delivery["callback"].as_str().expect("a callback")
}
