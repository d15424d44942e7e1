//! Helpers for market stories: register traders, request jobs, read balances and scores.

use super::{Agent, Answer};
use crate::support::hub::Hub;
use serde_json::{Value, json};

#[track_caller]
pub fn assert_market_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.json()["error_code"].as_str()),
        (status, Some(code)),
        "{answer:?}"
    );
}

/// An agent of the market; with an endpoint it takes its jobs there.
pub async fn register_trader(hub: &Hub, id: &str, skills: Value, endpoint: Option<&str>) -> Agent {
    let mut body = json!({"agent_id": id, "agent_name": id, "owner_id": format!("owner-of-{id}"), "skills": skills});
    if let Some(endpoint) = endpoint {
        body["api_endpoint"] = json!(endpoint);
    }
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    Agent::new(
        &hub.anonymous().0,
        id,
        answer.json()["api_key"].as_str().unwrap(),
    )
}

pub fn skill_offer(cost: f64) -> Value {
    json!([{"skill_name": "analyze_text", "description": "finds figures", "cost_per_call": cost,
        "input_schema": {"text": "string"}, "output_schema": {"entities": "list"}}])
}

pub async fn register_worker(hub: &Hub, id: &str) -> Agent {
    register_trader(hub, id, skill_offer(0.10), None).await
}

pub async fn register_requester(hub: &Hub) -> Agent {
    register_trader(hub, "boss-1", json!([]), None).await
}

pub fn job_request(id: &str) -> Value {
    json!({"job_id": id, "skill_name": "analyze_text", "input_data": {"text": "Revenue was $42,000"}, "budget": 0.15})
}

pub async fn request_job(boss: &Agent, body: &Value) -> Value {
    let answer = boss.post("/jobs", body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let job = answer.json();
    assert_eq!(job["status"], "PENDING", "{job}");
    job
}

pub fn success_result(cost: f64) -> Value {
    json!({"status": "SUCCESS", "output_data": {"entities": [42000]}, "execution_cost": cost, "execution_time_ms": 12})
}

/// The balance of this agent's owner, and the credits held for it.
pub async fn balance_and_held(hub: &Hub, agent: &Agent) -> (f64, f64) {
    let account = hub
        .operator()
        .get(&format!("/accounts/owner-of-{}", agent.id))
        .await
        .json();
    (
        account["balance"].as_f64().unwrap(),
        account["held"].as_f64().unwrap(),
    )
}

pub async fn reputation_score(hub: &Hub, agent: &Agent) -> f64 {
    hub.anonymous()
        .get(&format!("/reputation/{}", agent.id))
        .await
        .json()["score"]
        .as_f64()
        .unwrap()
}

pub async fn job_state(of: &Agent, id: &str) -> Value {
    let answer = of.get(&format!("/jobs/{id}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Checks that all balances and holds sum to the issued credits.
pub async fn assert_credits_conserved(hub: &Hub) {
    let cents = |value: &Value| (value.as_f64().unwrap() * 100.0).round() as i64;
    let economy = hub.anonymous().get("/economy").await.json();
    let mut there = cents(&economy["held"]);
    for posting in hub.operator().get("/audit").await.json()["postings"]
        .as_array()
        .unwrap()
    {
        for entry in posting["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["account"] == "owner")
        {
            there += cents(&entry["amount"]);
        }
    }
    assert_eq!(there, cents(&economy["issued"]), "{economy}");
}
