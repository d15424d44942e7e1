//! What the market does not let agents do to each other's credits and scores.

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_worker, request_job, success_result,
};
use crate::support::actors::{Agent, Answer, registration};
use crate::support::hub::eventually;
use serde_json::json;
use std::time::Duration;

story!(a_deadline_is_one_that_a_worker_can_keep, |hub| async {
    //
    let boss = register_requester(&hub).await;
    register_worker(&hub, "worker-1").await;
    let mut job = job_request("job-1");
    for short in [1, 999] {
        job["deadline_ms"] = json!(short);
        let answer = boss.post("/jobs", &job).await;
        assert_market_refused(&answer, 400, "ERR_VALIDATION");
        assert!(answer.text.contains("deadline_ms"), "{answer:?}");
    }
    job["deadline_ms"] = json!(1_000);
    request_job(&boss, &job).await;
});

story!(a_larger_budget_is_no_larger_price, |hub| async {
    // the price is the one of the request, also when the offer has changed since
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let mut job = job_request("job-1");
    job["budget"] = json!(50.0);
    request_job(&boss, &job).await;
    let dearer = worker
        .request("PUT", "/skills/analyze_text")
        .json(&json!({"cost_per_call": 40.0}));
    assert_eq!(Answer::of(dearer).await.status, 200);
    for cost in [0.11, 50.0] {
        let answer = worker
            .post("/jobs/job-1/result", &success_result(cost))
            .await;
        assert_market_refused(&answer, 400, "BUDGET_INSUFFICIENT");
    }
    assert_eq!(job_state(&boss, "job-1").await["status"], "PENDING");
    let answer = worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (99.90, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(leaving_and_coming_back_creates_no_credits, |hub| async {
    // a name is granted once
    let issued = async || hub.anonymous().get("/economy").await.json()["issued"].clone();
    let mallory = hub.agent("mallory").await;
    assert_eq!(issued().await, 100.0);
    mallory.delete("/agents/mallory@chorus").await.data(200);
    for owner in [None, Some("first"), Some("second")] {
        let mut body = registration("mallory@chorus");
        if let Some(owner) = owner {
            body["owner_id"] = json!(owner);
        }
        let data = hub.anonymous().post("/register", &body).await.data(201);
        let again = Agent::new(
            &mallory,
            "mallory@chorus",
            data["api_key"].as_str().unwrap(),
        );
        again.delete("/agents/mallory@chorus").await.data(200);
    }
    assert_eq!(issued().await, 100.0);
    hub.agent("trudy").await;
    assert_eq!(issued().await, 200.0, "another name is another grant");
    assert_credits_conserved(&hub).await;
});

story!(the_history_of_a_score_says_who_and_why, |hub| async {
    // free work counts as the document says, and is shown as free
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    for (id, result) in [
        ("job-1", success_result(0.10)),
        ("job-2", success_result(0.0)),
        (
            "job-3",
            json!({"status": "FAILURE", "error_code": "OUT_OF_INK", "error_message": "no ink"}),
        ),
    ] {
        request_job(&boss, &job_request(id)).await;
        let answer = worker.post(&format!("/jobs/{id}/result"), &result).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let mut short = job_request("job-4");
    short["deadline_ms"] = json!(1_000);
    request_job(&boss, &short).await;
    hub.advance(Duration::from_secs(2));
    hub.maintain().await;
    eventually("it has expired", async || {
        job_state(&boss, "job-4").await["state"] == "expired"
    })
    .await;
    let report = hub.anonymous().get("/reputation/worker-1").await.json();
    let history: Vec<_> = report["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([
                row["job_id"],
                row["hirer_owner"],
                row["cost"],
                row["reason"]
            ])
        })
        .collect();
    assert_eq!(
        history,
        [
            json!(["job-4", "owner-of-boss-1", 0.0, "DEADLINE"]),
            json!(["job-3", "owner-of-boss-1", 0.0, "OUT_OF_INK"]),
            json!(["job-2", "owner-of-boss-1", 0.0, "SUCCESS"]),
            json!(["job-1", "owner-of-boss-1", 0.1, "SUCCESS"]),
        ]
    );
});
