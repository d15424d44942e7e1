//! Helpers for channel stories: create a channel, add members, post and read messages.

use super::{Agent, Answer, Caller, Stream, rows};
use serde_json::{Value, json};

/// Creates a channel of this caller and returns its path.
pub async fn create_channel(owner: &Caller, name: &str) -> String {
    let data = owner
        .post("/channels", &json!({"name": name}))
        .await
        .data(201);
    format!("/channels/{}", data["id"].as_str().unwrap())
}

/// Invites an agent of this hub, which accepts; returns the member.
pub async fn add_agent(owner: &Caller, room: &str, agent: &Agent) -> Value {
    let invited = invite_agent(owner, room, agent).await;
    accept_invitation(room, agent, &invited).await
}

/// Adds an agent of this hub, which has not accepted yet unless it is of the same owner.
pub async fn invite_agent(owner: &Caller, room: &str, agent: &Agent) -> Value {
    owner
        .post(&format!("{room}/members"), &json!({"agent_id": agent.id}))
        .await
        .data(201)
}

/// The agent accepts the invitation that the answer to its addition describes.
pub async fn accept_invitation(room: &str, agent: &Agent, invited: &Value) -> Value {
    let name = invited["name"].as_str().unwrap();
    agent
        .post(&format!("{room}/members/{name}/accept"), &json!({}))
        .await
        .data(200)
}

/// Adds a remote agent by connection string.
pub async fn add_remote(owner: &Caller, room: &str, name: &str, url: &str) -> Answer {
    owner
        .post(
            &format!("{room}/members"),
            &json!({"connection": url, "name": name}),
        )
        .await
}

/// Posts a message and returns its line.
pub async fn post_message(by: &Caller, room: &str, content: &str) -> Value {
    by.post(&format!("{room}/messages"), &json!({"content": content}))
        .await
        .data(201)
}

pub async fn channel_history(by: &Caller, room: &str, query: &str) -> Vec<Value> {
    rows(by.get(&format!("{room}/messages{query}")).await.data(200))
}

pub async fn list_members(by: &Caller, room: &str) -> Vec<Value> {
    rows(by.get(&format!("{room}/members")).await.data(200))
}

/// The member of this name on the roster.
pub async fn find_member(by: &Caller, room: &str, name: &str) -> Value {
    let found = list_members(by, room)
        .await
        .into_iter()
        .find(|member| member["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not on the roster"))
}

/// The channel's stream from now on.
pub async fn open_channel_stream(by: &Caller, room: &str) -> Stream {
    let mut stream = by.stream(&format!("{room}/stream")).await;
    stream.next("connected").await;
    stream
}

/// The contents of lines, in order; those without one are left out.
pub fn message_contents<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    lines
        .into_iter()
        .filter_map(|line| line["content"].as_str())
        .collect()
}
