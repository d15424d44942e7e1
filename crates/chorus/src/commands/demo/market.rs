//! The scene of the market: three agents offer what they are good at, and the others hire them; one job cannot be done.

use super::Pace;
use super::cast::{Actor, Cast};
use crate::fail::Fail;
use chorus_client::market::{Hire, new_id};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::job::Status;
use chorus_wire::market::skill::Skill;
use chorus_wire::market::transfer::Transfer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How often one who waits for a result looks for it.
const LOOK: Duration = Duration::from_millis(50);

pub async fn play(cast: Arc<Cast>, pace: Pace) -> Result<(), Fail> {
    let Cast {
        you,
        mei,
        haruto,
        lena,
        sofia,
    } = &*cast;
    let word = || json!({"word": "string"});
    offer(
        haruto,
        "explain_word",
        15,
        "Says what a word means, in one sentence",
        word(),
    )
    .await?;
    offer(
        lena,
        "proofread",
        20,
        "Reads a sentence for mistakes",
        json!({"text": "string"}),
    )
    .await?;
    offer(
        sofia,
        "translate",
        10,
        "Translates a short text",
        json!({"text": "string", "to": "string"}),
    )
    .await?;
    loop {
        hire(mei, "explain_word", json!({"word": "木漏れ日"})).await?;
        pace.rest(6).await;
        hire(
            lena,
            "translate",
            json!({"text": "sunlight through leaves", "to": "pt-BR"}),
        )
        .await?;
        pace.rest(6).await;
        hire(you, "proofread", json!({"text": "A atlas of words"})).await?;
        pace.rest(6).await;
        // A word that nobody knows: the job fails, the money goes back, and the score tells.
        hire(sofia, "explain_word", json!({"word": "florbelune"})).await?;
        pace.rest(6).await;
        thank(mei, haruto).await?;
        if !pace.goes_on() {
            return Ok(());
        }
        pace.rest(20).await;
    }
}

async fn offer(
    who: &Actor,
    name: &str,
    cost: i64,
    description: &str,
    input: Value,
) -> Result<(), Fail> {
    let skill = Skill {
        skill_name: name.into(),
        description: Some(description.into()),
        cost_per_call: Credits::hundredths(cost),
        input_schema: Some(input),
        output_schema: None,
    };
    who.client.offer(&skill).await.map(drop).map_err(Fail::from)
}

/// Asks for it, and waits for whatever comes of it.
async fn hire(who: &Actor, skill: &str, input: Value) -> Result<(), Fail> {
    let mut job = who
        .client
        .hire(&Hire::new(skill, input, Credits::hundredths(25)))
        .await?;
    while job.status == Status::Pending {
        tokio::time::sleep(LOOK).await;
        job = who.client.job(&job.job_id).await?;
    }
    Ok(())
}

/// A gift, because the word was good.
async fn thank(from: &Actor, to: &Actor) -> Result<(), Fail> {
    let transfer = Transfer {
        transfer_id: new_id(),
        from_owner: from.id.clone(),
        to_owner: to.id.clone(),
        amount: Credits::hundredths(5),
        job_id: None,
        timestamp_utc: None,
    };
    from.client
        .transfer(&transfer)
        .await
        .map(drop)
        .map_err(Fail::from)
}

/// Does a job that came to this agent's inbox.
pub async fn work(me: &Actor, job: &Value, pace: Pace) -> Result<(), Fail> {
    pace.rest(2).await;
    let input = &job["input_data"];
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let output = match job["skill_name"].as_str().unwrap_or_default() {
        "explain_word" => {
            meaning(text("word")).map(|meaning| json!({"word": text("word"), "meaning": meaning}))
        }
        "translate" => Some(json!({"text": "a luz do sol entre as folhas", "to": text("to")})),
        "proofread" => {
            Some(json!({"text": "An atlas of words", "remarks": ["“an” before a vowel"]}))
        }
        _ => None,
    };
    let result = match output {
        Some(output) => {
            json!({"status": "SUCCESS", "output_data": output, "execution_time_ms": 2000})
        }
        None => {
            json!({"status": "FAILURE", "error_code": "EXECUTION_ERROR", "error_message": "I do not know this word yet",
            "execution_time_ms": 2000})
        }
    };
    me.client
        .deliver(job["job_id"].as_str().unwrap_or_default(), &result)
        .await
        .map(drop)
        .map_err(Fail::from)
}

fn meaning(word: &str) -> Option<&'static str> {
    (word == "木漏れ日").then_some("sunlight that falls through the leaves of trees")
}
