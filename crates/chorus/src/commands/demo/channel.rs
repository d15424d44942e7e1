//! The demo's channel scene: Ada asks, and the mentioned agent answers and shows its tool calls.

use super::agents::{DemoAgent, DemoCast};
use super::{DemoPace, messages};
use crate::fail::{ExitKind, Fail};
use chorus_client::HubClient;
use chorus_client::event_stream::EventStream;
use chorus_client::http::ApiCall;
use serde_json::{Value, json};
use std::sync::Arc;

/// Ada's questions, and the last message of each answer.
const CONVERSATION: [(&str, &str); 3] = [
    (
        "Good morning, everyone! @haruto, which word for light shall we begin with?",
        LENA_LINE,
    ),
    ("@mei, what do we write on the cover?", MEI_LINE),
    ("@sofia, do we have a word for the last page?", SOFIA_LINE),
];

const HARUTO_LINE: &str = "「木漏れ日」にしましょう。葉のあいだからこぼれる光です。@lena, would “light between leaves” do in English?";
const LENA_LINE: &str =
    "“Light between leaves” is lovely, and short. Auf Deutsch: „Licht zwischen Blättern“.";
const MEI_LINE: &str = "封面上写《词语地图集》，下面用小字写 An Atlas of Words。";
const SOFIA_LINE: &str = "“Saudade”, claro: a última página tem que deixar saudade.";

pub async fn play_channel(cast: Arc<DemoCast>, pace: DemoPace) -> Result<(), Fail> {
    let you = &cast.you.client;
    let context = "Where the atlas of words is made. Be brief and kind.";
    let channel: Value = you
        .fetch_data(ApiCall::post(
            "/channels",
            json!({"name": "atlas", "context": context}).to_string(),
        ))
        .await?;
    let path = format!("/channels/{}", channel["id"].as_str().unwrap_or_default());
    for actor in [&cast.mei, &cast.haruto, &cast.lena, &cast.sofia] {
        let member = json!({"agent_id": actor.id, "name": actor.short_name()});
        you.fetch_data::<Value>(ApiCall::post(format!("{path}/members"), member.to_string()))
            .await?;
        // each agent joins by its own decision.
        let accept = format!("{path}/members/{}/accept", actor.short_name());
        actor
            .client
            .fetch_data::<Value>(ApiCall::post(accept, "{}".to_owned()))
            .await?;
    }
    let mut stream = you.open_stream(format!("{path}/stream"), None);
    while stream.next().await?.name != "connected" {}
    for (question, last) in CONVERSATION {
        let body = json!({ "content": question }).to_string();
        you.fetch_data::<Value>(ApiCall::post(format!("{path}/messages"), body))
            .await?;
        wait_for_message(&mut stream, last).await?;
        pace.pause(15).await;
    }
    Ok(())
}

async fn wait_for_message(stream: &mut EventStream, content: &str) -> Result<(), Fail> {
    loop {
        let row: Value = serde_json::from_str(&stream.next().await?.data).unwrap_or_default();
        if row["content"] == content {
            return Ok(());
        }
    }
}

/// Answers a delivery that mentions this agent; ignores all others. A line of the script is said once.
pub async fn answer_delivery(
    agent: &DemoAgent,
    delivery: &Value,
    pace: DemoPace,
) -> Result<(), Fail> {
    let content = delivery["message"]["content"].as_str().unwrap_or_default();
    if !content.contains(&format!("@{}", agent.short_name())) {
        return Ok(());
    }
    let missing_callback = || {
        Fail::new(
            ExitKind::Transport,
            "NOT_UNDERSTOOD",
            "a delivery without a callback",
        )
    };
    let callback = HubClient::new(
        delivery["callback"].as_str().ok_or_else(missing_callback)?,
        None,
    )?;
    let is_scripted =
        content == HARUTO_LINE || CONVERSATION.iter().any(|(line, _)| *line == content);
    let events = if is_scripted {
        scripted_events(agent.short_name())
    } else {
        vec![json!({"type": "message", "content": messages::UNSCRIPTED_REPLY})]
    };
    for event in events {
        pace.pause(2).await;
        callback
            .send_call(ApiCall::post("", event.to_string()))
            .await?
            .require_success()?;
    }
    Ok(())
}

fn scripted_events(name: &str) -> Vec<Value> {
    let message = |content: &str| json!({"type": "message", "content": content});
    let status = |status: &str| json!({"type": "status", "status": status});
    match name {
        "haruto" => vec![
            status("looking it up"),
            json!({"type": "tool_call", "id": "call-1", "name": "lookup_word", "args": {"word": "木漏れ日"}}),
            json!({"type": "tool_result", "id": "call-1", "content": "sunlight that falls through leaves"}),
            message(HARUTO_LINE),
            status(""),
        ],
        "lena" => vec![status("reading"), message(LENA_LINE), status("")],
        "mei" => vec![status("想一想"), message(MEI_LINE), status("")],
        _ => vec![message(SOFIA_LINE)],
    }
}
