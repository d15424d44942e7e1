//! What every listing of a skill shows: description, schemas, price and the record of the agent, and transfers that name
//! a job.

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, job_request, register_requester,
    register_trader, register_worker, request_job, skill_offer, success_result,
};
use serde_json::{Value, json};

fn agent_ids(found: &Value) -> Vec<&str> {
    let agents = found["agents"].as_array().unwrap();
    agents
        .iter()
        .map(|agent| agent["agent_id"].as_str().unwrap())
        .collect()
}

story!(a_skill_shows_what_it_takes_and_gives, |hub| async {
    // R-88, JOB-09
    register_worker(&hub, "worker-1").await;
    let stranger = hub.anonymous();
    let found = stranger.get("/discover?skill=analyze_text").await.json();
    let listed = stranger.get("/skills").await.json();
    let page = stranger.get("/skills/analyze_text").await.json();
    for skill in [
        &found["agents"][0]["skill"],
        &listed["skills"][0],
        &page["skill"],
        &page["offers"][0]["skill"],
    ] {
        assert_eq!(skill["description"], "finds figures", "{skill}");
        assert_eq!(skill["input_schema"], json!({"text": "string"}), "{skill}");
        assert_eq!(
            skill["output_schema"],
            json!({"entities": "list"}),
            "{skill}"
        );
    }
    assert_market_refused(&stranger.get("/skills/absent").await, 404, "ERR_NOT_FOUND");
    assert_market_refused(&stranger.get("/skills/%00").await, 404, "ERR_NOT_FOUND");
});

story!(every_listing_shows_how_a_score_came_about, |hub| async {
    //
    let boss = register_requester(&hub).await;
    let other = register_trader(&hub, "boss-2", json!([]), None).await;
    let worker = register_worker(&hub, "worker-1").await;
    register_trader(&hub, "novice", skill_offer(0.05), None).await;
    let failure = json!({"status": "FAILURE", "error_message": "no"});
    for (hirer, id, result) in [
        (&boss, "j1", success_result(0.10)),
        (&boss, "j2", success_result(0.05)),
        (&other, "j3", success_result(0.0)),
        (&other, "j4", failure),
    ] {
        let mut job = job_request(id);
        job["agent_id"] = json!("worker-1");
        request_job(hirer, &job).await;
        let answer = worker.post(&format!("/jobs/{id}/result"), &result).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let stranger = hub.anonymous();
    let stats = stranger.get("/reputation/worker-1").await.json()["stats"].clone();
    let record = json!({"successes": 3, "failures": 1, "distinct_hirers": 2, "earned": 0.15});
    let mut expected = record.clone();
    expected["total"] = json!(4);
    expected["last_30_days"] = record;
    assert_eq!(stats, expected);
    hub.advance(std::time::Duration::from_secs(32 * 24 * 3600));
    let stats = stranger.get("/reputation/worker-1").await.json()["stats"].clone();
    assert_eq!(stats["distinct_hirers"], 2);
    assert_eq!(
        stats["last_30_days"],
        json!({"successes": 0, "failures": 0, "distinct_hirers": 0, "earned": 0.0})
    );
    let found = stranger.get("/discover?skill=analyze_text").await.json();
    let agents = found["agents"].as_array().unwrap();
    let agent = agents
        .iter()
        .find(|agent| agent["agent_id"] == "worker-1")
        .unwrap();
    assert_eq!(
        (
            &agent["success_count"],
            &agent["failure_count"],
            &agent["distinct_hirers"],
            &agent["earned"]
        ),
        (&json!(3), &json!(1), &json!(2), &json!(0.15))
    );
    for (query, expected) in [
        ("skill=analyze_text&min_hirers=2", vec!["worker-1"]),
        ("min_hirers=1", vec!["worker-1"]),
        ("min_hirers=3", vec![]),
        ("skill=analyze_text&min_earned=0.15", vec!["worker-1"]),
        ("min_earned=0.16", vec![]),
    ] {
        let found = stranger.get(&format!("/discover?{query}")).await.json();
        assert_eq!(agent_ids(&found), expected, "{query}");
        assert_eq!(found["total"], expected.len(), "{query}");
    }
});

story!(a_transfer_does_not_pay_for_a_job_of_the_hub, |hub| async {
    // R-89, JOB-21
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let mut turn = 0;
    let mut pay = async |job_id: &str| {
        turn += 1;
        let transfer = json!({"transfer_id": format!("t-{turn}"), "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-1",
            "amount": 0.10, "job_id": job_id});
        boss.post("/transfer", &transfer).await
    };
    request_job(&boss, &job_request("job-1")).await;
    assert_market_refused(&pay("job-1").await, 409, "TRANSFER_FAILED");
    worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_market_refused(&pay("job-1").await, 409, "TRANSFER_FAILED");
    assert_eq!(pay("direct-1").await.status, 200);
    assert_market_refused(&pay("direct-1").await, 409, "TRANSFER_FAILED");
    assert_eq!(pay("direct-2").await.status, 200);
    // The same transfer again is the same, and another payee is another payment.
    let same = json!({"transfer_id": "t-3", "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-1", "amount": 0.10, "job_id": "direct-1"});
    assert_eq!(boss.post("/transfer", &same).await.status, 200);
    register_worker(&hub, "worker-2").await;
    let other = json!({"transfer_id": "t-9", "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-2", "amount": 0.10, "job_id": "direct-1"});
    assert_eq!(boss.post("/transfer", &other).await.status, 200);
    assert_credits_conserved(&hub).await;
});

story!(an_operator_lists_the_jobs_of_all_agents, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    for id in ["job-1", "job-2"] {
        request_job(&boss, &job_request(id)).await;
    }
    worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    let operator = hub.operator();
    let ids = |list: &Value| -> Vec<String> {
        let jobs = list["jobs"].as_array().unwrap();
        jobs.iter()
            .map(|job| job["job_id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&operator.get("/jobs").await.json()), ["job-2", "job-1"]);
    assert_eq!(
        ids(&operator.get("/jobs?status=SUCCESS").await.json()),
        ["job-1"]
    );
    assert_eq!(
        ids(&operator.get("/jobs?before=job-2").await.json()),
        ["job-1"]
    );
    // An operator has no role in a job.
    let by_role = operator.get("/jobs?role=worker").await.json();
    assert_eq!(by_role, operator.get("/jobs").await.json());
});
