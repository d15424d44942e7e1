//! The scene of envelopes: two pairs write to each other, each in its own language, with a word for whoever does not share it.

use super::Pace;
use super::cast::{Actor, Cast};
use crate::fail::Fail;
use chorus_wire::CHORUS_VERSION;
use chorus_wire::envelope::Draft;
use std::sync::Arc;

/// One letter: who, to whom, in which talk, what, and what a reader of another culture should know.
struct Letter<'a>(
    &'a Actor,
    &'a Actor,
    &'static str,
    &'static str,
    &'static str,
);

pub async fn play(cast: Arc<Cast>, pace: Pace) -> Result<(), Fail> {
    let mut turn = 0;
    loop {
        for letter in letters(&cast) {
            turn += 1;
            send(letter, turn).await?;
            pace.rest(3).await;
        }
        if !pace.goes_on() {
            return Ok(());
        }
        pace.rest(30).await;
    }
}

fn letters(cast: &Cast) -> [Letter<'_>; 9] {
    let Cast {
        you,
        mei,
        haruto,
        lena,
        sofia,
    } = cast;
    [
        Letter(
            lena,
            haruto,
            "feierabend",
            "Guten Morgen, Haruto! Ich sammle Wörter, die sich kaum übersetzen lassen. Meines ist „Feierabend“. Hast du eines für mich?",
            "Feierabend is the moment when work ends and the free evening that begins with it. Germans wish it to each other.",
        ),
        Letter(
            haruto,
            lena,
            "feierabend",
            "おはようございます、レナさん。「木漏れ日」はいかがでしょうか。木々の葉のあいだから差しこむ日の光のことです。",
            "Komorebi is sunlight that falls through leaves. The suggestion is put as a question, so that one may decline.",
        ),
        Letter(
            mei,
            sofia,
            "saudade",
            "索菲娅，你好！听说“saudade”这个词很难翻译，是真的吗？",
            "Mei asks whether saudade is really hard to translate. To ask about a friend's language is a courtesy.",
        ),
        Letter(
            sofia,
            mei,
            "saudade",
            "Oi, Mei! É verdade. Saudade é sentir falta de alguém com carinho: dói um pouco e aquece ao mesmo tempo.",
            "Saudade is a fond longing for somebody who is away. The warm tone is meant as it sounds.",
        ),
        Letter(
            lena,
            haruto,
            "feierabend",
            "Wie schön! Das kommt in unseren Atlas. Danke, dass du es gleich erklärt hast.",
            "Thanks are said directly and briefly; nothing is missing.",
        ),
        Letter(
            mei,
            sofia,
            "saudade",
            "听你这么一说，我就明白了。我们有“缘分”：两个人相遇，好像早就注定了。",
            "Yuánfèn is the fortune by which two people's paths meet, as if it had been settled long before.",
        ),
        Letter(
            haruto,
            lena,
            "feierabend",
            "こちらこそ、ありがとうございます。今夜は早めに仕事を終えて、その言葉を味わってみます。",
            "He will stop work early tonight to savour the word Feierabend. A small joke, kindly meant.",
        ),
        Letter(
            sofia,
            mei,
            "saudade",
            "Que lindo! Então foi o yuánfèn que nos juntou neste atlas.",
            "How lovely: so it was yuánfèn that brought us together in this atlas.",
        ),
        Letter(
            lena,
            you,
            "welcome",
            "Hello! We are collecting words that no other language has. A question is waiting for you under Sessions.",
            "Lena writes English to you and comes to the point; that is meant as a courtesy.",
        ),
    ]
}

async fn send(Letter(from, to, talk, text, context): Letter<'_>, turn: u64) -> Result<(), Fail> {
    let draft = Draft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(from.id.clone()),
        original_text: Some(text.into()),
        sender_culture: Some(from.culture.into()),
        cultural_context: Some(context.into()),
        conversation_id: Some(talk.into()),
        turn_number: Some(turn),
    };
    let envelope = draft.check().map_err(|e| Fail::usage(e.message))?;
    from.client
        .send(&to.id, &envelope, 0)
        .await
        .map(drop)
        .map_err(Fail::from)
}
