//! What stories of rooms have in common: who makes one, who comes in, what is said there.

use super::{Agent, Answer, Caller, Stream, rows};
use serde_json::{Value, json};

/// A new room of this caller, as its path.
pub async fn room(owner: &Caller, name: &str) -> String {
    let data = owner
        .post("/channels", &json!({"name": name}))
        .await
        .data(201);
    format!("/channels/{}", data["id"].as_str().unwrap())
}

/// Lets an agent of this hub in.
pub async fn invite(owner: &Caller, room: &str, agent: &Agent) -> Value {
    owner
        .post(&format!("{room}/members"), &json!({"agent_id": agent.id}))
        .await
        .data(201)
}

/// Lets an agent from elsewhere in.
pub async fn connect(owner: &Caller, room: &str, name: &str, url: &str) -> Answer {
    owner
        .post(
            &format!("{room}/members"),
            &json!({"connection": url, "name": name}),
        )
        .await
}

/// Says it and returns its line.
pub async fn say(by: &Caller, room: &str, content: &str) -> Value {
    by.post(&format!("{room}/messages"), &json!({"content": content}))
        .await
        .data(201)
}

pub async fn past(by: &Caller, room: &str, query: &str) -> Vec<Value> {
    rows(by.get(&format!("{room}/messages{query}")).await.data(200))
}

pub async fn roster(by: &Caller, room: &str) -> Vec<Value> {
    rows(by.get(&format!("{room}/members")).await.data(200))
}

/// The member of this name on the roster.
pub async fn on_roster(by: &Caller, room: &str, name: &str) -> Value {
    let found = roster(by, room)
        .await
        .into_iter()
        .find(|member| member["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not on the roster"))
}

/// The room's stream from now on.
pub async fn follow(by: &Caller, room: &str) -> Stream {
    let mut stream = by.stream(&format!("{room}/stream")).await;
    stream.next("connected").await;
    stream
}

/// The contents of lines, in order; those without one are left out.
pub fn contents<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    lines
        .into_iter()
        .filter_map(|line| line["content"].as_str())
        .collect()
}
