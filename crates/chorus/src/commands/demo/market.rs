//! The demo's market scene: three agents offer skills, the others hire them, and one job fails.

use super::DemoPace;
use super::agents::{DemoAgent, DemoCast};
use crate::fail::Fail;
use chorus_client::market::{JobRequest, random_id};
use chorus_wire::credits::Credits;
use chorus_wire::market::job::JobStatus;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::market::transfer::CreditTransfer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How often a requester polls for the result.
const JOB_POLL: Duration = Duration::from_millis(50);

pub async fn play_market(cast: Arc<DemoCast>, pace: DemoPace) -> Result<(), Fail> {
    let DemoCast {
        you,
        mei,
        haruto,
        lena,
        sofia,
    } = &*cast;
    let word_schema = || json!({"word": "string"});
    publish_skill(
        haruto,
        "explain_word",
        15,
        "Says what a word means, in one sentence",
        word_schema(),
    )
    .await?;
    publish_skill(
        lena,
        "proofread",
        20,
        "Reads a sentence for mistakes",
        json!({"text": "string"}),
    )
    .await?;
    publish_skill(
        sofia,
        "translate",
        10,
        "Translates a short text",
        json!({"text": "string", "to": "string"}),
    )
    .await?;
    hire_and_wait(mei, "explain_word", json!({"word": "木漏れ日"})).await?;
    pace.pause(6).await;
    hire_and_wait(
        lena,
        "translate",
        json!({"text": "sunlight through leaves", "to": "pt-BR"}),
    )
    .await?;
    pace.pause(6).await;
    hire_and_wait(you, "proofread", json!({"text": "A atlas of words"})).await?;
    pace.pause(6).await;
    // An unknown word: the job fails, the credits are returned, and the worker's reputation falls.
    hire_and_wait(sofia, "explain_word", json!({"word": "florbelune"})).await?;
    pace.pause(6).await;
    transfer_thanks(mei, haruto).await
}

async fn publish_skill(
    agent: &DemoAgent,
    name: &str,
    cost: i64,
    description: &str,
    input: Value,
) -> Result<(), Fail> {
    let skill = SkillOffer {
        skill_name: name.into(),
        description: Some(description.into()),
        cost_per_call: Credits::from_hundredths(cost),
        input_schema: Some(input),
        output_schema: None,
    };
    agent
        .client
        .publish_skill(&skill)
        .await
        .map(drop)
        .map_err(Fail::from)
}

/// Requests a job and waits for its end.
async fn hire_and_wait(agent: &DemoAgent, skill: &str, input: Value) -> Result<(), Fail> {
    let mut job = agent
        .client
        .request_job(&JobRequest::new(skill, input, Credits::from_hundredths(25)))
        .await?;
    while job.status == JobStatus::Pending {
        tokio::time::sleep(JOB_POLL).await;
        job = agent.client.fetch_job(&job.job_id).await?;
    }
    Ok(())
}

/// A small gift of credits.
async fn transfer_thanks(from: &DemoAgent, to: &DemoAgent) -> Result<(), Fail> {
    let transfer = CreditTransfer {
        transfer_id: random_id(),
        from_owner: from.id.clone(),
        to_owner: to.id.clone(),
        amount: Credits::from_hundredths(5),
        job_id: None,
        timestamp_utc: None,
    };
    from.client
        .transfer_credits(&transfer)
        .await
        .map(drop)
        .map_err(Fail::from)
}

/// Does a job that came to this agent's inbox.
pub async fn work_on_job(agent: &DemoAgent, job: &Value, pace: DemoPace) -> Result<(), Fail> {
    pace.pause(2).await;
    let input = &job["input_data"];
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let output = match job["skill_name"].as_str().unwrap_or_default() {
        "explain_word" => find_meaning(text("word"))
            .map(|meaning| json!({"word": text("word"), "meaning": meaning})),
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
    agent
        .client
        .deliver_result(job["job_id"].as_str().unwrap_or_default(), &result)
        .await
        .map(drop)
        .map_err(Fail::from)
}

fn find_meaning(word: &str) -> Option<&'static str> {
    (word == "木漏れ日").then_some("sunlight that falls through the leaves of trees")
}
