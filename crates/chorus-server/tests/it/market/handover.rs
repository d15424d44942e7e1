//! How a job gets to its worker and on to the next one: what each party is told, and whose terms apply (R-61, R-66, R-86, R-88).

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::actors::{Agent, Reply, Webhook};
use crate::support::hub::{Hub, eventually};
use serde_json::{Value, json};
use std::time::Duration;

/// An agent that offers the skill of [`job_request`] with schemas of its own.
async fn register_with_schemas(hub: &Hub, id: &str, cost: f64, schemas: Value) -> Agent {
    let mut skills = skill_offer(cost);
    for (name, schema) in schemas.as_object().unwrap() {
        skills[0][name] = schema.clone();
    }
    register_trader(hub, id, skills, None).await
}

async fn decline(worker: &Agent, id: &str) {
    let report =
        json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH", "error_message": "not mine"});
    let answer = worker.post(&format!("/jobs/{id}/result"), &report).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

story!(a_worker_is_told_of_the_fault_in_its_answer, |hub| async {
    // R-86: the hub cannot refuse an answer, so the worker learns of the fault on its inbox
    let fault = r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.105}"#;
    let endpoint = Webhook::replying(Reply::json(200, fault)).await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
    let mut workers = worker.inbox().await;
    request_job(&boss, &job_request("job-1")).await;
    let told = workers.next("job_update").await.data;
    assert_eq!(told["job_id"], "job-1");
    let update = &told["timeline"][0];
    assert_eq!(update["kind"], "refused", "{told}");
    assert!(
        update["text"].as_str().unwrap().contains("execution_cost"),
        "{told}"
    );
});

story!(a_report_is_meant_whatever_its_letters, |hub| async {
    // R-86: a failure in small letters is a report with a fault, not the acceptance of the job
    let fault = r#"{"status":"failure","error_message":"no figures"}"#;
    let endpoint = Webhook::replying(Reply::json(200, fault)).await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
    request_job(&boss, &job_request("job-1")).await;
    eventually("it is noted", async || {
        let job = job_state(&worker, "job-1").await;
        job["timeline"][0]["kind"] == "refused" && job["state"] == "dispatched"
    })
    .await;
});

story!(an_endpoint_that_takes_a_job_is_judged_by_it, |hub| async {
    // R-86: any other 2xx says that the endpoint has the job, so a missed deadline lowers the score
    let endpoint = Webhook::replying(Reply::json(200, r#"{"queued": true}"#)).await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
    request_job(&boss, &job_request("job-1")).await;
    eventually("it is dispatched", async || {
        job_state(&boss, "job-1").await["state"] == "dispatched"
    })
    .await;
    hub.advance(Duration::from_secs(601));
    hub.maintain().await;
    eventually("it has expired", async || {
        job_state(&boss, "job-1").await["state"] == "expired"
    })
    .await;
    assert_eq!(reputation_score(&hub, &worker).await, 45.5);
});

story!(an_answer_of_an_endpoint_is_a_sign_of_life, |hub| async {
    // R-66: one connection was refused, but the endpoint answers another job meanwhile
    let done = r#"{"status":"SUCCESS","output_data":{"entities":[]}}"#;
    let mut endpoint = Webhook::script(move |turn| match turn {
        0 => Reply::held(Reply::json(200, done)),
        1 => Reply::Bytes(Vec::new()),
        _ => Reply::json(200, done),
    })
    .await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
    request_job(&boss, &job_request("job-1")).await;
    endpoint.next_request().await;
    request_job(&boss, &job_request("job-2")).await;
    eventually("it has failed", async || {
        job_state(&boss, "job-2").await["error_code"] == "AGENT_OFFLINE"
    })
    .await;
    let offline = boss.post("/jobs", &job_request("job-3")).await;
    assert_market_refused(&offline, 409, "AGENT_OFFLINE");
    endpoint.release();
    eventually("it is done", async || {
        job_state(&boss, "job-1").await["status"] == "SUCCESS"
    })
    .await;
    request_job(&boss, &job_request("job-4")).await;
});

story!(
    a_job_goes_to_the_inbox_of_a_worker_whose_endpoint_is_away,
    |hub| async {
        // R-61: the worker is there all the same
        let boss = register_requester(&hub).await;
        let url = "http://127.0.0.1:1/jobs";
        let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(url)).await;
        let mut workers = worker.inbox().await;
        request_job(&boss, &job_request("job-1")).await;
        let job = workers.next("job").await.data;
        assert_eq!(job["input_data"]["text"], "Revenue was $42,000");
        let answer = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(answer.json()["status"], "SUCCESS", "{answer:?}");
    }
);

story!(the_terms_of_a_job_are_those_of_its_worker, |hub| async {
    // R-88: the next worker promised another output, and is held to its own promise
    let boss = register_requester(&hub).await;
    let first =
        register_with_schemas(&hub, "first", 0.05, json!({"output_schema": {"a": "list"}})).await;
    let second = register_with_schemas(
        &hub,
        "second",
        0.12,
        json!({"output_schema": {"b": "list"}}),
    )
    .await;
    let mut bosses = boss.inbox().await;
    request_job(&boss, &job_request("job-1")).await;
    decline(&first, "job-1").await;
    // R-86: the requester hears who does not do it.
    let told = bosses.next("job_update").await.data;
    let update = &told["timeline"][0];
    assert_eq!(
        (&update["kind"], &update["agent_id"], &update["text"]),
        (&json!("declined"), &json!("first"), &json!("not mine"))
    );
    let report =
        |key: &str| json!({"status": "SUCCESS", "output_data": {key: []}, "execution_cost": 0.12});
    let wrong = second.post("/jobs/job-1/result", &report("a")).await;
    assert_market_refused(&wrong, 400, "ERR_VALIDATION");
    let right = second.post("/jobs/job-1/result", &report("b")).await;
    assert_eq!(right.status, 200, "{right:?}");
    assert_eq!(balance_and_held(&hub, &second).await, (100.12, 0.0));
    assert_eq!(balance_and_held(&hub, &first).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(
    a_job_is_passed_on_to_a_worker_that_takes_its_input,
    |hub| async {
        // R-86, JOB-27
        let boss = register_requester(&hub).await;
        let first = register_trader(&hub, "first", skill_offer(0.05), None).await;
        let other_input = json!({"input_schema": {"page": "integer"}});
        let unfit = register_with_schemas(&hub, "unfit", 0.08, other_input).await;
        let last = register_worker(&hub, "last").await;
        request_job(&boss, &job_request("job-1")).await;
        decline(&first, "job-1").await;
        assert_eq!(job_state(&boss, "job-1").await["agent_id"], "last");
        let hidden = unfit.get("/jobs/job-1").await;
        assert_market_refused(&hidden, 404, "ERR_NOT_FOUND");
        let answer = last.post("/jobs/job-1/result", &success_result(0.10)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
);

story!(
    a_job_is_not_passed_on_to_an_agent_that_is_away,
    |hub| async {
        // R-66, R-86: it would miss the deadline of a job that it does not hear of
        let boss = register_requester(&hub).await;
        let here = register_trader(&hub, "present", skill_offer(0.05), None).await;
        let silent = register_worker(&hub, "silent").await;
        let beat = silent.post("/heartbeat", &json!({})).await;
        assert_eq!(beat.status, 200, "{beat:?}");
        hub.advance(Duration::from_secs(91));
        let beat = here.post("/heartbeat", &json!({})).await;
        assert_eq!(beat.status, 200, "{beat:?}");
        request_job(&boss, &job_request("job-1")).await;
        assert_eq!(job_state(&boss, "job-1").await["agent_id"], "present");
        decline(&here, "job-1").await;
        let job = job_state(&boss, "job-1").await;
        assert_eq!(
            (&job["state"], &job["error_code"]),
            (&json!("failed"), &json!("SKILL_MISMATCH"))
        );
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        for worker in [&here, &silent] {
            assert_eq!(reputation_score(&hub, worker).await, 50.0);
        }
        assert_credits_conserved(&hub).await;
    }
);

story!(a_worker_by_name_has_its_price_too, |hub| async {
    // JOB-28
    let boss = register_requester(&hub).await;
    register_worker(&hub, "worker-1").await;
    let mut named = job_request("job-1");
    named["agent_id"] = json!("worker-1");
    named["budget"] = json!(0.09);
    let refused = boss.post("/jobs", &named).await;
    assert_market_refused(&refused, 400, "BUDGET_INSUFFICIENT");
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
});
