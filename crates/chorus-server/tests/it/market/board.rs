//! The task board: claims, leases, approval, and what it does to credits and scores.

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, skill_offer,
    success_result,
};
use crate::support::actors::{Agent, Answer};
use crate::support::hub::eventually;
use serde_json::{Value, json};
use std::time::Duration;

fn board_job(id: &str) -> Value {
    let mut job = job_request(id);
    job["board"] = json!(true);
    job
}

fn approved_job(id: &str, approve_within_ms: u64) -> Value {
    let mut job = board_job(id);
    job["approve_within_ms"] = json!(approve_within_ms);
    job
}

async fn publish(boss: &Agent, job: &Value) {
    let answer = boss.post("/jobs", job).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let job = answer.json();
    assert_eq!(
        (&job["state"], &job["agent_id"]),
        (&json!("open"), &Value::Null)
    );
}

async fn claim(worker: &Agent, id: &str) -> Answer {
    Answer::of(worker.request("POST", &format!("/jobs/{id}/claim"))).await
}

async fn act(by: &Agent, id: &str, act: &str) -> Answer {
    Answer::of(by.request("POST", &format!("/jobs/{id}/{act}"))).await
}

fn update_kinds(job: &Value) -> Vec<&str> {
    let updates = job["timeline"].as_array().unwrap();
    updates
        .iter()
        .map(|update| update["kind"].as_str().unwrap())
        .collect()
}

fn job_ids(board: &Value) -> Vec<&str> {
    let jobs = board["jobs"].as_array().unwrap();
    jobs.iter()
        .map(|job| job["job_id"].as_str().unwrap())
        .collect()
}

story!(a_job_on_the_board_goes_to_its_first_claimer, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let other = register_worker(&hub, "worker-2").await;
    let mut bosses = boss.inbox().await;
    publish(&boss, &board_job("job-1")).await;
    publish(&boss, &board_job("job-1")).await;
    assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
    let board = worker.get("/board?skill=analyze_text").await.json();
    assert_eq!(job_ids(&board), ["job-1"]);
    assert_eq!(
        board["jobs"][0]["input_data"]["text"],
        "Revenue was $42,000"
    );
    assert_eq!(
        job_ids(&worker.get("/board?skill=other").await.json()),
        [""; 0]
    );
    assert_eq!(
        job_ids(&hub.operator().get("/board").await.json()),
        ["job-1"]
    );
    assert_market_refused(
        &hub.anonymous().get("/board").await,
        401,
        "ERR_UNAUTHORIZED",
    );

    let claims = futures_util::future::join(claim(&worker, "job-1"), claim(&other, "job-1")).await;
    let (won, lost, winner) = match claims {
        (first, second) if first.status == 200 => (first, second, &worker),
        (first, second) => (second, first, &other),
    };
    assert_eq!(won.status, 200, "{won:?}");
    assert_market_refused(&lost, 409, "ERR_JOB_CLOSED");
    assert_eq!(won.json()["input_data"]["text"], "Revenue was $42,000");
    assert_eq!(
        claim(winner, "job-1").await.status,
        200,
        "a claim may be repeated"
    );
    let update = bosses.next("job_update").await.data;
    assert_eq!(update["timeline"][0]["kind"], "claimed");
    assert_eq!(update["timeline"][0]["agent_id"], winner.id.as_str());
    assert_eq!(job_ids(&worker.get("/board").await.json()), [""; 0]);
    let answer = winner
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_eq!(answer.json()["status"], "SUCCESS", "{answer:?}");
    assert_eq!(bosses.next("job_result").await.data["state"], "done");
    assert_eq!(balance_and_held(&hub, winner).await, (100.10, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (99.90, 0.0));
    assert_eq!(reputation_score(&hub, winner).await, 51.0);
    assert_credits_conserved(&hub).await;
});

story!(
    a_claim_needs_the_skill_the_price_and_the_input,
    |hub| async {
        let boss = register_requester(&hub).await;
        publish(&boss, &board_job("job-1")).await;
        let unskilled = register_trader(&hub, "unskilled", json!([]), None).await;
        let dear = register_trader(&hub, "dear", skill_offer(0.16), None).await;
        let strict = json!([{"skill_name": "analyze_text", "cost_per_call": 0.1, "input_schema": {"page": "integer"}}]);
        let strict = register_trader(&hub, "strict", strict, None).await;
        assert_market_refused(&claim(&unskilled, "job-1").await, 400, "SKILL_MISMATCH");
        assert_market_refused(&claim(&dear, "job-1").await, 400, "BUDGET_INSUFFICIENT");
        assert_market_refused(&claim(&strict, "job-1").await, 400, "SKILL_MISMATCH");
        assert_market_refused(&claim(&boss, "job-1").await, 403, "ERR_FORBIDDEN");
        assert_market_refused(&claim(&dear, "absent").await, 404, "ERR_NOT_FOUND");
        let mut named = board_job("job-2");
        named["agent_id"] = json!("dear");
        let answer = boss.post("/jobs", &named).await;
        assert_market_refused(&answer, 400, "ERR_VALIDATION");
        assert!(answer.text.contains("agent_id"), "{answer:?}");
        let mut direct = job_request("job-3");
        direct["approve_within_ms"] = json!(60_000);
        let answer = boss.post("/jobs", &direct).await;
        assert_market_refused(&answer, 400, "ERR_VALIDATION");
        assert!(answer.text.contains("approve_within_ms"), "{answer:?}");
        let blocked = boss
            .request("PUT", "/agent/blocks/late@chorus")
            .json(&json!({}));
        assert!(Answer::of(blocked).await.status < 300);
        let late = hub
            .agent_with("late@chorus", &json!({"skills": skill_offer(0.10)}))
            .await;
        assert_market_refused(&claim(&late, "job-1").await, 403, "ERR_BLOCKED");
        assert_eq!(job_state(&boss, "job-1").await["state"], "open");
    }
);

story!(
    a_claimed_job_goes_back_when_its_worker_is_silent,
    |hub| async {
        let boss = register_requester(&hub).await;
        let silent = register_worker(&hub, "silent").await;
        let busy = register_worker(&hub, "busy").await;
        let mut long = board_job("job-1");
        long["deadline_ms"] = json!(3_600_000);
        publish(&boss, &long).await;
        assert_eq!(claim(&silent, "job-1").await.status, 200);
        hub.advance(Duration::from_secs(301));
        hub.maintain().await;
        eventually("it is open again", async || {
            job_state(&boss, "job-1").await["state"] == "open"
        })
        .await;
        assert_market_refused(
            &silent
                .post("/jobs/job-1/result", &success_result(0.10))
                .await,
            404,
            "ERR_NOT_FOUND",
        );
        assert_market_refused(&claim(&silent, "job-1").await, 403, "ERR_FORBIDDEN");
        assert_eq!(reputation_score(&hub, &silent).await, 50.0);
        // A worker that reports keeps the job.
        assert_eq!(claim(&busy, "job-1").await.status, 200);
        for minute in 0..4 {
            hub.advance(Duration::from_secs(200));
            hub.maintain().await;
            let note = json!({"status": "PENDING", "progress": format!("part {minute}")});
            let answer = busy.post("/jobs/job-1/result", &note).await;
            assert_eq!(answer.json()["agent_id"], "busy", "{answer:?}");
        }
        let answer = busy.post("/jobs/job-1/result", &success_result(0.10)).await;
        assert_eq!(answer.json()["status"], "SUCCESS", "{answer:?}");
        assert_eq!(balance_and_held(&hub, &busy).await, (100.10, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_claimed_job_may_be_declined_and_is_open_again,
    |hub| async {
        //
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        publish(&boss, &board_job("job-1")).await;
        assert_eq!(claim(&worker, "job-1").await.status, 200);
        let decline = json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH", "error_message": "not mine"});
        let answer = worker.post("/jobs/job-1/result", &decline).await;
        assert_eq!(answer.json()["state"], "open", "{answer:?}");
        assert_eq!(reputation_score(&hub, &worker).await, 50.0);
        assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
        assert_eq!(act(&boss, "job-1", "cancel").await.status, 200);
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(an_unclaimed_job_expires_and_is_refunded, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, &board_job("job-1")).await;
    hub.advance(Duration::from_secs(601));
    assert_eq!(job_ids(&worker.get("/board").await.json()), [""; 0]);
    assert_market_refused(&claim(&worker, "job-1").await, 409, "ERR_JOB_CLOSED");
    hub.maintain().await;
    eventually("it has expired", async || {
        job_state(&boss, "job-1").await["state"] == "expired"
    })
    .await;
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
});

story!(a_delivery_is_paid_when_it_is_approved, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let mut bosses = boss.inbox().await;
    let mut workers = worker.inbox().await;
    publish(&boss, &approved_job("job-1", 60_000)).await;
    assert_eq!(claim(&worker, "job-1").await.status, 200);
    let above = worker
        .post("/jobs/job-1/result", &success_result(0.11))
        .await;
    assert_market_refused(&above, 400, "BUDGET_INSUFFICIENT");
    let delivered = worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await
        .json();
    assert_eq!(
        (&delivered["state"], &delivered["status"]),
        (&json!("delivered"), &json!("PENDING"))
    );
    assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
    assert_eq!(
        bosses.next("job_update").await.data["timeline"][0]["kind"],
        "claimed"
    );
    let told = bosses.next("job_update").await.data;
    assert_eq!(told["output_data"]["entities"], json!([42000]));
    for (by, name, status) in [
        (&boss, "cancel", 409),
        (&worker, "approve", 403),
        (&worker, "reject", 403),
    ] {
        let answer = act(by, "job-1", name).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
    // the same again is answered as the first time.
    let path = "/jobs/job-1/result";
    assert_eq!(worker.post(path, &success_result(0.10)).await.status, 200);
    let other = worker.post(path, &success_result(0.09)).await;
    assert_market_refused(&other, 409, "ERR_JOB_CLOSED");
    let approved = act(&boss, "job-1", "approve").await.json();
    assert_eq!(
        (&approved["status"], &approved["execution_cost"]),
        (&json!("SUCCESS"), &json!(0.1))
    );
    assert_eq!(workers.next("job_result").await.data["state"], "done");
    assert_eq!(act(&boss, "job-1", "reject").await.status, 409);
    assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    assert_eq!(reputation_score(&hub, &worker).await, 51.0);
    assert_credits_conserved(&hub).await;
});

story!(
    a_delivery_is_approved_by_itself_when_the_time_is_over,
    |hub| async {
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        for id in ["job-1", "job-2"] {
            // The time for approval begins with the delivery, also past the deadline of the work.
            publish(&boss, &approved_job(id, 1_200_000)).await;
            assert_eq!(claim(&worker, id).await.status, 200);
            let answer = worker
                .post(&format!("/jobs/{id}/result"), &success_result(0.10))
                .await;
            assert_eq!(answer.json()["state"], "delivered", "{answer:?}");
        }
        hub.advance(Duration::from_secs(900));
        hub.maintain().await;
        assert_eq!(job_state(&boss, "job-1").await["state"], "delivered");
        hub.advance(Duration::from_secs(301));
        assert_market_refused(&act(&boss, "job-2", "reject").await, 409, "ERR_JOB_CLOSED");
        hub.maintain().await;
        for id in ["job-1", "job-2"] {
            eventually("it is paid", async || {
                job_state(&boss, id).await["state"] == "done"
            })
            .await;
        }
        assert_eq!(balance_and_held(&hub, &worker).await, (100.20, 0.0));
        assert_eq!(balance_and_held(&hub, &boss).await, (99.80, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_rejected_delivery_is_refunded_and_moves_no_score,
    |hub| async {
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        publish(&boss, &approved_job("job-1", 60_000)).await;
        assert_eq!(claim(&worker, "job-1").await.status, 200);
        worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        let reason = json!({"reason": "the figures are missing"});
        let rejected = boss.post("/jobs/job-1/reject", &reason).await.json();
        assert_eq!(
            (
                &rejected["state"],
                &rejected["error_code"],
                &rejected["error_message"]
            ),
            (
                &json!("failed"),
                &json!("REJECTED"),
                &json!("the figures are missing")
            )
        );
        assert_eq!(
            job_state(&worker, "job-1").await["output_data"],
            Value::Null
        );
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(balance_and_held(&hub, &worker).await, (100.0, 0.0));
        assert_eq!(reputation_score(&hub, &worker).await, 50.0);
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_worker_reports_progress_and_asks_one_question,
    |hub| async {
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        let mut bosses = boss.inbox().await;
        let mut workers = worker.inbox().await;
        assert_eq!(boss.post("/jobs", &job_request("job-1")).await.status, 202);
        workers.next("job").await;
        for text in ["reading", "counting"] {
            let note = json!({"status": "PENDING", "progress": text});
            assert_eq!(worker.post("/jobs/job-1/result", &note).await.status, 200);
            assert_eq!(bosses.next("job_update").await.data["progress"], text);
        }
        let question = json!({"status": "PENDING", "question": "In which currency?"});
        let asked = worker.post("/jobs/job-1/result", &question).await.json();
        assert_eq!(asked["state"], "input-required");
        let told = bosses.next("job_update").await.data;
        assert_eq!(
            (&told["state"], &told["question"]),
            (&json!("input-required"), &json!("In which currency?"))
        );
        let listed = boss.get("/jobs?status=input-required").await.json();
        assert_eq!(job_ids(&listed), ["job-1"]);
        let answer = json!({"answer": "In dollars."});
        assert_market_refused(
            &worker.post("/jobs/job-1/answer", &answer).await,
            403,
            "ERR_FORBIDDEN",
        );
        assert_eq!(
            boss.post("/jobs/job-1/answer", &answer).await.json()["state"],
            "dispatched"
        );
        assert_market_refused(
            &boss.post("/jobs/job-1/answer", &answer).await,
            409,
            "ERR_JOB_CLOSED",
        );
        assert_eq!(
            workers.next("job_update").await.data["timeline"][0]["text"],
            "In dollars."
        );
        let again = workers.next("job").await.data;
        assert_eq!(
            (&again["question"], &again["answer"]),
            (&json!("In which currency?"), &json!("In dollars."))
        );
        assert_eq!(again["input_data"]["text"], "Revenue was $42,000");
        assert_eq!(
            worker.post("/jobs/job-1/result", &question).await.status,
            200,
            "it may be repeated"
        );
        let second = json!({"status": "PENDING", "question": "And of which year?"});
        assert_market_refused(
            &worker.post("/jobs/job-1/result", &second).await,
            400,
            "ERR_VALIDATION",
        );
        let result = success_result(0.10);
        assert_eq!(worker.post("/jobs/job-1/result", &result).await.status, 200);
        let job = job_state(&boss, "job-1").await;
        let expected = ["progress", "progress", "question", "answer"];
        assert_eq!(update_kinds(&job), expected);
    }
);

story!(
    a_worker_that_waits_for_an_answer_is_not_judged,
    |hub| async {
        // D-96
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        assert_eq!(boss.post("/jobs", &job_request("job-1")).await.status, 202);
        let question = json!({"status": "PENDING", "question": "Which?"});
        assert_eq!(
            worker.post("/jobs/job-1/result", &question).await.status,
            200
        );
        hub.advance(Duration::from_secs(601));
        hub.maintain().await;
        eventually("it has expired", async || {
            job_state(&boss, "job-1").await["state"] == "expired"
        })
        .await;
        assert_eq!(reputation_score(&hub, &worker).await, 50.0);
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    }
);
