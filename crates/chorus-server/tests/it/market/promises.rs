//! What docs/market.md promises about credits and scores of direct hires, where no other story has it (R-62…R-64, R-86).

use super::skills::worker as register_adder;
use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::actors::{Answer, Reply, Webhook};
use crate::support::hub::eventually;
use chorus_wire::credits::Credits;
use serde_json::json;

story!(every_code_of_a_decline_costs_nothing, |hub| async {
    // R-86; a job for one agent by name ends, although another offers the skill
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let other = register_worker(&hub, "worker-2").await;
    for code in ["SKILL_MISMATCH", "BUDGET_INSUFFICIENT", "AGENT_OFFLINE"] {
        let mut job = job_request(code);
        job["agent_id"] = json!("worker-1");
        request_job(&boss, &job).await;
        let decline = json!({"status": "FAILURE", "error_code": code, "error_message": "no"});
        let answer = worker.post(&format!("/jobs/{code}/result"), &decline).await;
        assert_eq!(answer.json()["state"], "failed", "{answer:?}");
        assert_eq!(job_state(&boss, code).await["error_code"], code);
    }
    for agent in [&worker, &other] {
        assert_eq!(reputation_score(&hub, agent).await, 50.0);
    }
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(an_execution_error_is_a_failure, |hub| async {
    // R-86: no decline, so the job ends and no other worker gets it
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let other = register_worker(&hub, "worker-2").await;
    request_job(&boss, &job_request("job-1")).await;
    let (worker, other) = match job_state(&boss, "job-1").await["agent_id"].as_str() {
        Some("worker-1") => (worker, other),
        _ => (other, worker),
    };
    let failure =
        json!({"status": "FAILURE", "error_code": "EXECUTION_ERROR", "error_message": "it broke"});
    let answer = worker.post("/jobs/job-1/result", &failure).await;
    assert_eq!(answer.json()["state"], "failed", "{answer:?}");
    let job = job_state(&boss, "job-1").await;
    assert_eq!(
        (&job["agent_id"], &job["error_code"]),
        (&json!(worker.id), &json!("EXECUTION_ERROR"))
    );
    assert_eq!(reputation_score(&hub, &worker).await, 45.5);
    assert_eq!(reputation_score(&hub, &other).await, 50.0);
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(a_job_is_offered_to_eight_workers_at_most, |hub| async {
    // R-86
    let boss = register_requester(&hub).await;
    let mut workers = Vec::new();
    for number in 0..10 {
        workers.push(register_worker(&hub, &format!("worker-{number}")).await);
    }
    request_job(&boss, &job_request("job-1")).await;
    let decline =
        json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH", "error_message": "no"});
    let mut asked = Vec::new();
    loop {
        let job = job_state(&boss, "job-1").await;
        if job["state"] == "failed" {
            break;
        }
        let id = job["agent_id"].as_str().unwrap().to_owned();
        let worker = workers.iter().find(|worker| worker.id == id).unwrap();
        assert!(!asked.contains(&id), "{id} was asked twice");
        asked.push(id);
        let answer = worker.post("/jobs/job-1/result", &decline).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(asked.len(), 8, "{asked:?}");
    for worker in &workers {
        assert_eq!(reputation_score(&hub, worker).await, 50.0);
    }
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(held_credits_are_not_spent_elsewhere, |hub| async {
    // R-64: neither by a transfer nor by another job
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let mut job = job_request("job-1");
    job["budget"] = json!(99.90);
    request_job(&boss, &job).await;
    assert_eq!(balance_and_held(&hub, &boss).await, (0.10, 99.90));
    let pay = async |id: &str, amount: f64| {
        let transfer = json!({"transfer_id": id, "from_owner": "owner-of-boss-1",
            "to_owner": "owner-of-worker-1", "amount": amount});
        boss.post("/transfer", &transfer).await
    };
    assert_market_refused(&pay("t-1", 0.11).await, 400, "TRANSFER_FAILED");
    let mut on_board = job_request("job-2");
    on_board["board"] = json!(true);
    for second in [job_request("job-2"), on_board] {
        let answer = boss.post("/jobs", &second).await;
        assert_market_refused(&answer, 400, "TRANSFER_FAILED");
    }
    let result = worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_eq!(result.status, 200, "{result:?}");
    // What the worker did not cost is free again.
    assert_eq!(pay("t-1", 0.11).await.status, 200);
    assert_eq!(balance_and_held(&hub, &boss).await, (99.79, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(the_callback_of_a_former_worker_is_refused, |hub| async {
    // R-86: its key and its callback
    let mut endpoint = Webhook::replying(Reply::json(
        400,
        r#"{"error_code":"SKILL_MISMATCH","error_message":"not today"}"#,
    ))
    .await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    let former = register_trader(&hub, "former", skill_offer(0.05), Some(&url)).await;
    let last = register_worker(&hub, "last").await;
    request_job(&boss, &job_request("job-1")).await;
    let callback = endpoint.next_request().await.json()["callback_url"].clone();
    let (_, rest) = callback.as_str().unwrap().split_once("://").unwrap();
    let path = format!("/{}", rest.split_once('/').unwrap().1);
    eventually("another has it", async || {
        job_state(&boss, "job-1").await["agent_id"] == "last"
    })
    .await;
    let result = success_result(0.05);
    assert_market_refused(
        &hub.anonymous().post(&path, &result).await,
        404,
        "ERR_NOT_FOUND",
    );
    assert_market_refused(
        &former.post("/jobs/job-1/result", &result).await,
        404,
        "ERR_NOT_FOUND",
    );
    let answer = last.post("/jobs/job-1/result", &success_result(0.10)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(balance_and_held(&hub, &former).await, (100.0, 0.0));
    assert_eq!(balance_and_held(&hub, &last).await, (100.10, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(a_score_ends_at_a_hundred, |hub| async {
    // JOB-25
    let ada = register_adder(&hub, "ada-1", "adding", 0.0).await;
    let boss = hub.agent("boss").await;
    for turn in 0..52 {
        let id = format!("job-{turn}");
        let job = json!({"job_id": id, "agent_id": "ada-1", "skill_name": "adding", "budget": 0});
        assert_eq!(boss.post("/jobs", &job).await.status, 202);
        let result = json!({"status": "SUCCESS", "output_data": turn});
        let answer = ada.post(&format!("/jobs/{id}/result"), &result).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let report = hub.anonymous().get("/reputation/ada-1").await.json();
    assert_eq!(report["score"], 100.0);
    assert_eq!(report["stats"]["successes"], 52);
    assert_eq!(report["stats"]["earned"], 0.0, "work for nothing is shown");
    // A job that leaves the score where it is was judged too.
    assert_eq!(report["history"][0]["job_id"], "job-51");
    assert_eq!(report["history"][0]["score_before"], 100.0);
});

story!(
    a_hub_may_grant_nothing,
    with(|settings| settings.hub.opening_grant = Credits::ZERO),
    |hub| async {
        // R-64: credits come from operators only
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        assert_eq!(balance_and_held(&hub, &boss).await, (0.0, 0.0));
        let refused = boss.post("/jobs", &job_request("job-1")).await;
        assert_market_refused(&refused, 400, "TRANSFER_FAILED");
        let credit = json!({"amount": 0.15});
        let issued = hub
            .operator()
            .post("/accounts/owner-of-boss-1/credit", &credit)
            .await;
        assert_eq!(issued.status, 200, "{issued:?}");
        request_job(&boss, &job_request("job-1")).await;
        let answer = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(balance_and_held(&hub, &worker).await, (0.10, 0.0));
        let economy = hub.anonymous().get("/economy").await.json();
        assert_eq!(economy["issued"], 0.15);
        assert_credits_conserved(&hub).await;
    }
);

story!(zero_is_a_price_a_budget_and_a_cost_only, |hub| async {
    // R-64
    let boss = register_requester(&hub).await;
    let worker = register_trader(&hub, "worker-1", skill_offer(0.0), None).await;
    let mut free = job_request("job-1");
    free["budget"] = json!(0);
    request_job(&boss, &free).await;
    let answer = worker
        .post("/jobs/job-1/result", &success_result(0.0))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let transfer = json!({"transfer_id": "t", "from_owner": "owner-of-boss-1",
        "to_owner": "owner-of-worker-1", "amount": 0});
    let answer = boss.post("/transfer", &transfer).await;
    assert_market_refused(&answer, 400, "ERR_VALIDATION");
    let issue = hub
        .operator()
        .post("/accounts/owner-of-boss-1/credit", &json!({"amount": 0}))
        .await;
    assert_market_refused(&issue, 400, "ERR_VALIDATION");
    let below = worker
        .request("PUT", "/skills/analyze_text")
        .json(&json!({"cost_per_call": -0.01}));
    assert_market_refused(&Answer::of(below).await, 400, "ERR_VALIDATION");
});
