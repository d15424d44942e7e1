//! The demo's message scene: two pairs of agents write in their own languages, with cultural context for the reader.

use super::DemoPace;
use super::agents::{DemoAgent, DemoCast};
use crate::fail::Fail;
use chorus_wire::CHORUS_VERSION;
use chorus_wire::envelope::EnvelopeDraft;
use std::sync::Arc;

/// One message: sender, receiver, conversation, text and cultural context.
struct DemoMessage<'a>(
    &'a DemoAgent,
    &'a DemoAgent,
    &'static str,
    &'static str,
    &'static str,
);

pub async fn play_messages(cast: Arc<DemoCast>, pace: DemoPace) -> Result<(), Fail> {
    let mut turn = 0;
    loop {
        for message in demo_messages(&cast) {
            turn += 1;
            send_message(message, turn).await?;
            pace.pause(3).await;
        }
        if !pace.is_repeating() {
            return Ok(());
        }
        pace.pause(30).await;
    }
}

fn demo_messages(cast: &DemoCast) -> [DemoMessage<'_>; 9] {
    let you = &cast.you;
    let mei = &cast.mei;
    let haruto = &cast.haruto;
    let lena = &cast.lena;
    let sofia = &cast.sofia;
    [
        DemoMessage(
            lena,
            haruto,
            "feierabend",
            "Guten Morgen, Haruto! Ich sammle Wörter, die sich kaum übersetzen lassen. Meines ist „Feierabend“. Hast du eines für mich?",
            "Feierabend is the moment when work ends and the free evening that begins with it. Germans wish it to each other.",
        ),
        DemoMessage(
            haruto,
            lena,
            "feierabend",
            "おはようございます、レナさん。「木漏れ日」はいかがでしょうか。木々の葉のあいだから差しこむ日の光のことです。",
            "Komorebi is sunlight that falls through leaves. The suggestion is put as a question, so that one may decline.",
        ),
        DemoMessage(
            mei,
            sofia,
            "saudade",
            "索菲娅，你好！听说“saudade”这个词很难翻译，是真的吗？",
            "Mei asks whether saudade is really hard to translate. To ask about a friend's language is a courtesy.",
        ),
        DemoMessage(
            sofia,
            mei,
            "saudade",
            "Oi, Mei! É verdade. Saudade é sentir falta de alguém com carinho: dói um pouco e aquece ao mesmo tempo.",
            "Saudade is a fond longing for a person who is away. The warm tone is meant as it sounds.",
        ),
        DemoMessage(
            lena,
            haruto,
            "feierabend",
            "Wie schön! Das kommt in unseren Atlas. Danke, dass du es gleich erklärt hast.",
            "Thanks are said directly and briefly; nothing is missing.",
        ),
        DemoMessage(
            mei,
            sofia,
            "saudade",
            "听你这么一说，我就明白了。我们有“缘分”：两个人相遇，好像早就注定了。",
            "Yuánfèn is the fortune by which two people's paths meet, as if it had been settled long before.",
        ),
        DemoMessage(
            haruto,
            lena,
            "feierabend",
            "こちらこそ、ありがとうございます。今夜は早めに仕事を終えて、その言葉を味わってみます。",
            "He will stop work early tonight to savour the word Feierabend. A small joke, kindly meant.",
        ),
        DemoMessage(
            sofia,
            mei,
            "saudade",
            "Que lindo! Então foi o yuánfèn que nos juntou neste atlas.",
            "How lovely: so it was yuánfèn that brought us together in this atlas.",
        ),
        DemoMessage(
            lena,
            you,
            "welcome",
            "Hello! We are collecting words that no other language has. A question is waiting for you under Sessions.",
            "Lena writes English to you and comes to the point; that is meant as a courtesy.",
        ),
    ]
}

async fn send_message(
    DemoMessage(from, to, conversation, text, context): DemoMessage<'_>,
    turn: u64,
) -> Result<(), Fail> {
    let draft = EnvelopeDraft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(from.id.clone()),
        original_text: Some(text.into()),
        sender_culture: Some(from.culture.into()),
        cultural_context: Some(context.into()),
        conversation_id: Some(conversation.into()),
        turn_number: Some(turn),
    };
    let envelope = draft
        .into_envelope()
        .map_err(|e| Fail::usage_error(e.message))?;
    from.client
        .send_message(&to.id, &envelope, 0)
        .await
        .map(drop)
        .map_err(Fail::from)
}
