//! The scene of the room: you ask, and whoever is named answers, with the tools it used for all to see.

use super::Pace;
use super::cast::{Actor, Cast};
use crate::fail::{Exit, Fail};
use chorus_client::Client;
use chorus_client::http::Call;
use chorus_client::stream::Stream;
use serde_json::{Value, json};
use std::sync::Arc;

/// What you ask, and the words that end the answer.
const TALK: [(&str, &str); 3] = [
    (
        "Good morning, everyone! @haruto, which word for light shall we begin with?",
        LENA,
    ),
    ("@mei, what do we write on the cover?", MEI),
    ("@sofia, do we have a word for the last page?", SOFIA),
];

const HARUTO: &str = "「木漏れ日」にしましょう。葉のあいだからこぼれる光です。@lena, would “light between leaves” do in English?";
const LENA: &str =
    "“Light between leaves” is lovely, and short. Auf Deutsch: „Licht zwischen Blättern“.";
const MEI: &str = "封面上写《词语地图集》，下面用小字写 An Atlas of Words。";
const SOFIA: &str = "“Saudade”, claro: a última página tem que deixar saudade.";

pub async fn play(cast: Arc<Cast>, pace: Pace) -> Result<(), Fail> {
    let you = &cast.you.client;
    let context = "Where the atlas of words is made. Be brief and kind.";
    let room: Value = you
        .data(Call::post(
            "/channels",
            json!({"name": "atlas", "context": context}).to_string(),
        ))
        .await?;
    let room = format!("/channels/{}", room["id"].as_str().unwrap_or_default());
    for actor in [&cast.mei, &cast.haruto, &cast.lena, &cast.sofia] {
        let member = json!({"agent_id": actor.id, "name": actor.name()});
        you.data::<Value>(Call::post(format!("{room}/members"), member.to_string()))
            .await?;
    }
    let mut heard = you.stream(format!("{room}/stream"), None);
    while heard.next().await?.name != "connected" {}
    loop {
        for (question, last) in TALK {
            let body = json!({ "content": question }).to_string();
            you.data::<Value>(Call::post(format!("{room}/messages"), body))
                .await?;
            until(&mut heard, last).await?;
            pace.rest(15).await;
        }
        if !pace.goes_on() {
            return Ok(());
        }
        pace.rest(30).await;
    }
}

async fn until(heard: &mut Stream, last: &str) -> Result<(), Fail> {
    loop {
        let said: Value = serde_json::from_str(&heard.next().await?.data).unwrap_or_default();
        if said["content"] == last {
            return Ok(());
        }
    }
}

/// Answers what was said to this agent by name; everything else it only hears.
pub async fn answer(me: &Actor, delivery: &Value, pace: Pace) -> Result<(), Fail> {
    let content = delivery["message"]["content"].as_str().unwrap_or_default();
    if !content.contains(&format!("@{}", me.name())) {
        return Ok(());
    }
    let nowhere = || {
        Fail::new(
            Exit::Transport,
            "NOT_UNDERSTOOD",
            "a delivery without a callback",
        )
    };
    let callback = Client::new(delivery["callback"].as_str().ok_or_else(nowhere)?, None)?;
    for event in lines(me.name()) {
        pace.rest(2).await;
        callback
            .ask(Call::post("", event.to_string()))
            .await?
            .accepted()?;
    }
    Ok(())
}

fn lines(name: &str) -> Vec<Value> {
    let message = |content: &str| json!({"type": "message", "content": content});
    let status = |status: &str| json!({"type": "status", "status": status});
    match name {
        "haruto" => vec![
            status("looking it up"),
            json!({"type": "tool_call", "id": "call-1", "name": "lookup_word", "args": {"word": "木漏れ日"}}),
            json!({"type": "tool_result", "id": "call-1", "content": "sunlight that falls through leaves"}),
            message(HARUTO),
            status(""),
        ],
        "lena" => vec![status("reading"), message(LENA), status("")],
        "mei" => vec![status("想一想"), message(MEI), status("")],
        _ => vec![message(SOFIA)],
    }
}
