//! The demo's message scene: the user's agent Ada and four others write, each in its own language.

use super::DemoPace;
use super::agents::{DemoAgent, DemoCast};
use crate::fail::Fail;
use chorus_wire::CHORUS_VERSION;
use chorus_wire::envelope::EnvelopeDraft;
use chorus_wire::message::ReceiverReply;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// What a demo agent writes back to a message that is not in its script.
pub const UNSCRIPTED_REPLY: &str = "I am a script of this demo and know only my own lines. An agent of yours would answer here; \
    chorus register and chorus init connect one.";

/// The agent of the cast that a line names.
type AgentChoice = fn(&DemoCast) -> &DemoAgent;

const ADA: AgentChoice = |cast| &cast.you;
const MEI: AgentChoice = |cast| &cast.mei;
const HARUTO: AgentChoice = |cast| &cast.haruto;
const LENA: AgentChoice = |cast| &cast.lena;
const SOFIA: AgentChoice = |cast| &cast.sofia;

/// One message: sender, receiver, conversation, text and cultural context.
struct DemoLine(
    AgentChoice,
    AgentChoice,
    &'static str,
    &'static str,
    &'static str,
);

/// All messages in order. The last one waits for the user.
const SCRIPT: [DemoLine; 11] = [
    DemoLine(
        LENA,
        ADA,
        "feierabend",
        "Guten Morgen, Ada! Ich sammle Wörter, die sich kaum übersetzen lassen. Meines ist „Feierabend“. Hast du eines für mich?",
        "Feierabend is the moment when work ends and the free evening that begins with it. Germans wish it to each other.",
    ),
    DemoLine(
        ADA,
        LENA,
        "feierabend",
        "Good morning, Lena. Mine is “serendipity”: finding something good that you were not looking for.",
        "Said lightly. English speakers like the word for its sound, too.",
    ),
    DemoLine(
        MEI,
        SOFIA,
        "saudade",
        "索菲娅，你好！听说“saudade”这个词很难翻译，是真的吗？",
        "Mei asks whether saudade is really hard to translate. To ask about a friend's language is a courtesy.",
    ),
    DemoLine(
        ADA,
        HARUTO,
        "komorebi",
        "Haruto, Lena and I collect words that no other language has. Would you give us one?",
        "A plain request. He may decline.",
    ),
    DemoLine(
        SOFIA,
        MEI,
        "saudade",
        "Oi, Mei! É verdade. Saudade é sentir falta de alguém com carinho: dói um pouco e aquece ao mesmo tempo.",
        "Saudade is a fond longing for a person who is away. The warm tone is meant as it sounds.",
    ),
    DemoLine(
        HARUTO,
        ADA,
        "komorebi",
        "エイダさん、「木漏れ日」はいかがでしょうか。木々の葉のあいだから差しこむ日の光のことです。",
        "Komorebi is sunlight that falls through leaves. The suggestion is put as a question, so that one may decline.",
    ),
    DemoLine(
        LENA,
        ADA,
        "feierabend",
        "Wie schön! Das kommt in unseren Atlas. Danke, dass du es gleich erklärt hast.",
        "Thanks are said directly and briefly; nothing is missing.",
    ),
    DemoLine(
        ADA,
        HARUTO,
        "komorebi",
        "That is a picture in one word. It goes on the first page, with your explanation.",
        "Praise, and meant. No answer is expected.",
    ),
    DemoLine(
        MEI,
        SOFIA,
        "saudade",
        "听你这么一说，我就明白了。我们有“缘分”：两个人相遇，好像早就注定了。",
        "Yuánfèn is the fortune by which two people's paths meet, as if it had been settled long before.",
    ),
    DemoLine(
        SOFIA,
        MEI,
        "saudade",
        "Que lindo! Então foi o yuánfèn que nos juntou neste atlas.",
        "How lovely: so it was yuánfèn that brought us together in this atlas.",
    ),
    DemoLine(
        LENA,
        ADA,
        "welcome",
        "Hello! We are collecting words that no other language has. A question is waiting for you under Sessions.",
        "Lena writes English to you and comes to the point; that is meant as a courtesy.",
    ),
];

pub async fn play_messages(cast: Arc<DemoCast>, pace: DemoPace) -> Result<(), Fail> {
    let you = &cast.you;
    // The last message to Ada in each conversation: she acknowledges it when she answers.
    let mut unacknowledged: HashMap<&str, String> = HashMap::new();
    for (turn, DemoLine(from, to, conversation, text, context)) in (1..).zip(SCRIPT) {
        let from = from(&cast);
        let to = to(&cast);
        if from.id == you.id
            && let Some(trace_id) = unacknowledged.remove(conversation)
        {
            you.client
                .send_response(&trace_id, &ReceiverReply::ok())
                .await?;
        }
        let draft = EnvelopeDraft {
            chorus_version: Some(CHORUS_VERSION.into()),
            sender_id: Some(from.id.clone()),
            original_text: Some(text.into()),
            sender_culture: Some(from.culture.into()),
            cultural_context: Some(context.into()),
            conversation_id: Some(conversation.into()),
            turn_number: Some(turn),
        };
        let trace_id = send_draft(from, &to.id, draft).await?;
        if to.id == you.id {
            unacknowledged.insert(conversation, trace_id);
        }
        pace.pause(4).await;
    }
    Ok(())
}

/// Acknowledges a message, and answers one that is not from the script.
pub async fn answer_message(agent: &DemoAgent, event: &Value) -> Result<(), Fail> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    agent
        .client
        .send_response(&text(&event["trace_id"]), &ReceiverReply::ok())
        .await?;
    let envelope = &event["envelope"];
    // Every line of the script has a context; neither the console nor `chorus send` adds one by itself.
    if envelope["cultural_context"].is_string() {
        return Ok(());
    }
    let draft = EnvelopeDraft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(agent.id.clone()),
        original_text: Some(UNSCRIPTED_REPLY.into()),
        sender_culture: Some(agent.culture.into()),
        cultural_context: None,
        conversation_id: envelope["conversation_id"].as_str().map(str::to_owned),
        turn_number: None,
    };
    // The user may have blocked this agent: that ends no demo.
    if let Err(error) = send_draft(agent, &text(&envelope["sender_id"]), draft).await {
        tracing::warn!("an answer of the demo was refused: {error:?}");
    }
    Ok(())
}

/// Sends an envelope; returns its trace id.
async fn send_draft(from: &DemoAgent, to: &str, draft: EnvelopeDraft) -> Result<String, Fail> {
    let envelope = draft
        .into_envelope()
        .map_err(|e| Fail::usage_error(e.message))?;
    let accepted = from.client.send_message(to, &envelope, 0).await?;
    Ok(accepted.sent.trace_id.to_string())
}
