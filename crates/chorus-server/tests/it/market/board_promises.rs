//! What docs/market.md promises about credits and scores on the board: the price of a claim, who judges a delivery and how often, and
//! work within one owner.

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, skill_offer,
    success_result,
};
use crate::support::actors::{Agent, Answer};
use crate::support::hub::eventually;
use serde_json::{Value, json};
use std::time::Duration;

async fn publish(boss: &Agent, id: &str, terms: Value) {
    let mut job = job_request(id);
    job["board"] = json!(true);
    for (name, value) in terms.as_object().unwrap() {
        job[name] = value.clone();
    }
    let answer = boss.post("/jobs", &job).await;
    assert_eq!(answer.status, 202, "{answer:?}");
}

async fn act(by: &Agent, id: &str, name: &str) -> Answer {
    Answer::of(by.request("POST", &format!("/jobs/{id}/{name}"))).await
}

#[track_caller]
fn assert_ok(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn report(worker: &Agent, id: &str, report: &Value) -> Answer {
    worker.post(&format!("/jobs/{id}/result"), report).await
}

async fn change_offer(worker: &Agent, offer: &Value) {
    let changed = worker.request("PUT", "/skills/analyze_text").json(offer);
    assert_ok(&Answer::of(changed).await);
}

story!(a_claim_is_paid_the_price_of_its_moment, |hub| async {
    // not the price when the job was published, and not a later one
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({"budget": 9.0})).await;
    change_offer(&worker, &json!({"cost_per_call": 0.12})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    change_offer(&worker, &json!({"cost_per_call": 8.0})).await;
    for above in [0.13, 8.0, 9.0] {
        let answer = report(&worker, "job-1", &success_result(above)).await;
        assert_market_refused(&answer, 400, "BUDGET_INSUFFICIENT");
    }
    // Without a cost it is the price of the claim.
    let result = json!({"status": "SUCCESS", "output_data": {"entities": []}});
    assert_ok(&report(&worker, "job-1", &result).await);
    assert_eq!(balance_and_held(&hub, &worker).await, (100.12, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (99.88, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(a_claim_keeps_the_output_schema_of_its_moment, |hub| async {
    //
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    change_offer(&worker, &json!({"cost_per_call": 0.10})).await;
    let wrong = json!({"status": "SUCCESS", "output_data": "text"});
    let answer = report(&worker, "job-1", &wrong).await;
    assert_market_refused(&answer, 400, "ERR_VALIDATION");
    assert_eq!(balance_and_held(&hub, &worker).await, (100.0, 0.0));
    assert_ok(&report(&worker, "job-1", &success_result(0.10)).await);
});

story!(a_rejection_is_in_the_timeline, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({"approve_within_ms": 60_000})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    assert_ok(&report(&worker, "job-1", &success_result(0.10)).await);
    let reason = json!({"reason": "the figures are missing"});
    assert_ok(&boss.post("/jobs/job-1/reject", &reason).await);
    for party in [&boss, &worker] {
        let timeline = job_state(party, "job-1").await["timeline"].clone();
        let updates: Vec<Value> = timeline
            .as_array()
            .unwrap()
            .iter()
            .map(|update| json!([update["kind"], update["agent_id"], update["text"]]))
            .collect();
        assert_eq!(
            updates,
            [
                json!(["claimed", "worker-1", null]),
                json!(["delivered", "worker-1", null]),
                json!(["rejected", "boss-1", "the figures are missing"]),
            ]
        );
    }
});

// after a rejection the same result is no longer the outcome, so it is not answered as the first time
story!(a_report_after_a_rejection_is_refused, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({"approve_within_ms": 60_000})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    let result = success_result(0.10);
    assert_ok(&report(&worker, "job-1", &result).await);
    assert_ok(&act(&boss, "job-1", "reject").await);
    for again in [&result, &success_result(0.05)] {
        let refused = report(&worker, "job-1", again).await;
        assert_market_refused(&refused, 409, "ERR_JOB_CLOSED");
    }
    let job = job_state(&boss, "job-1").await;
    assert_eq!(
        (&job["state"], &job["error_code"]),
        (&json!("failed"), &json!("REJECTED"))
    );
    assert_eq!(balance_and_held(&hub, &worker).await, (100.0, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(of_an_approval_and_a_rejection_one_stands, |hub| async {
    // R-62; failure 21
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let mut approved = 0;
    for turn in 0..10 {
        let id = format!("job-{turn}");
        publish(&boss, &id, json!({"approve_within_ms": 60_000})).await;
        assert_ok(&act(&worker, &id, "claim").await);
        assert_ok(&report(&worker, &id, &success_result(0.10)).await);
        let approval = act(&boss, &id, "approve");
        let rejection = act(&boss, &id, "reject");
        let (approval, rejection) = futures_util::future::join(approval, rejection).await;
        let is_approved = approval.status == 200;
        let (won, lost) = match is_approved {
            true => (approval, rejection),
            false => (rejection, approval),
        };
        assert_ok(&won);
        assert_market_refused(&lost, 409, "ERR_JOB_CLOSED");
        assert_eq!(job_state(&boss, &id).await["state"], won.json()["state"]);
        approved += i32::from(is_approved);
    }
    let credits = |cents: i32| f64::from(cents) / 100.0;
    assert_eq!(
        balance_and_held(&hub, &boss).await,
        (credits(10_000 - 10 * approved), 0.0)
    );
    assert_eq!(
        balance_and_held(&hub, &worker).await,
        (credits(10_000 + 10 * approved), 0.0)
    );
    assert_eq!(
        reputation_score(&hub, &worker).await,
        50.0 + f64::from(approved)
    );
    assert_credits_conserved(&hub).await;
});

story!(only_a_job_that_says_so_can_be_rejected, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({})).await;
    let refused = async |name: &str| {
        let answer = act(&boss, "job-1", name).await;
        assert_market_refused(&answer, 409, "ERR_JOB_CLOSED");
    };
    refused("reject").await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    refused("reject").await;
    refused("approve").await;
    assert_ok(&report(&worker, "job-1", &success_result(0.10)).await);
    refused("reject").await;
    refused("cancel").await;
    assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    assert_eq!(reputation_score(&hub, &worker).await, 51.0);
});

story!(strangers_neither_judge_nor_answer, |hub| async {
    // Failure 6: the key decides
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let stranger = register_worker(&hub, "worker-2").await;
    publish(&boss, "job-1", json!({"approve_within_ms": 60_000})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    let question = json!({"status": "PENDING", "question": "Which?"});
    assert_ok(&report(&worker, "job-1", &question).await);
    let answer = json!({"answer": "This."});
    let by_stranger = stranger.post("/jobs/job-1/answer", &answer).await;
    assert_market_refused(&by_stranger, 404, "ERR_NOT_FOUND");
    assert_ok(&boss.post("/jobs/job-1/answer", &answer).await);
    let by_stranger = report(&stranger, "job-1", &success_result(0.10)).await;
    assert_market_refused(&by_stranger, 404, "ERR_NOT_FOUND");
    let by_boss = report(&boss, "job-1", &success_result(0.10)).await;
    assert_market_refused(&by_boss, 403, "ERR_FORBIDDEN");
    assert_ok(&report(&worker, "job-1", &success_result(0.10)).await);
    for name in ["approve", "reject", "cancel"] {
        let by_stranger = act(&stranger, "job-1", name).await;
        assert_market_refused(&by_stranger, 404, "ERR_NOT_FOUND");
    }
    assert_eq!(job_state(&boss, "job-1").await["state"], "delivered");
    assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
});

story!(a_claim_within_one_owner_earns_no_score, |hub| async {
    // also when the delivery is approved, and also when it fails
    let boss = register_requester(&hub).await;
    let twin = json!({"agent_id": "twin-1", "agent_name": "twin-1", "owner_id": "owner-of-boss-1",
        "skills": skill_offer(0.10)});
    let registered = boss.post("/register", &twin).await;
    assert_eq!(registered.status, 201, "{registered:?}");
    let key = registered.json()["api_key"].as_str().unwrap().to_owned();
    let twin = Agent::new(&boss, "twin-1", &key);
    let failure = json!({"status": "FAILURE", "error_message": "no"});
    for (id, terms, result) in [
        ("job-1", json!({}), success_result(0.10)),
        (
            "job-2",
            json!({"approve_within_ms": 60_000}),
            success_result(0.10),
        ),
        ("job-3", json!({}), failure),
    ] {
        publish(&boss, id, terms).await;
        assert_ok(&act(&twin, id, "claim").await);
        assert_ok(&report(&twin, id, &result).await);
    }
    assert_ok(&act(&boss, "job-2", "approve").await);
    let report = hub.anonymous().get("/reputation/twin-1").await.json();
    assert_eq!(
        (&report["score"], &report["history"]),
        (&json!(50.0), &json!([]))
    );
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    let economy = hub.anonymous().get("/economy").await.json();
    assert_eq!(economy["volume"], 0.0, "nothing went to another owner");
    assert_credits_conserved(&hub).await;
});

story!(
    a_claimed_job_past_its_deadline_costs_score_and_no_credits,
    |hub| async {
        // a claimed job is dispatched, so its missed deadline counts; one that was cancelled does not
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        publish(&boss, "job-1", json!({"deadline_ms": 60_000})).await;
        publish(&boss, "job-2", json!({})).await;
        for id in ["job-1", "job-2"] {
            assert_ok(&act(&worker, id, "claim").await);
        }
        assert_ok(&act(&boss, "job-2", "cancel").await);
        assert_eq!(reputation_score(&hub, &worker).await, 50.0);
        hub.advance(Duration::from_secs(61));
        for id in ["job-1", "job-2"] {
            let late = report(&worker, id, &success_result(0.10)).await;
            assert_market_refused(&late, 409, "ERR_JOB_CLOSED");
        }
        assert_eq!(job_state(&boss, "job-1").await["state"], "expired");
        assert_eq!(reputation_score(&hub, &worker).await, 45.5);
        assert_eq!(balance_and_held(&hub, &worker).await, (100.0, 0.0));
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_delivery_that_time_approves_raises_the_score_once,
    |hub| async {
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        publish(&boss, "job-1", json!({"approve_within_ms": 60_000})).await;
        assert_ok(&act(&worker, "job-1", "claim").await);
        assert_ok(&report(&worker, "job-1", &success_result(0.10)).await);
        assert_eq!(
            reputation_score(&hub, &worker).await,
            50.0,
            "not judged yet"
        );
        hub.advance(Duration::from_secs(61));
        for _ in 0..3 {
            hub.maintain().await;
        }
        eventually("it is paid", async || {
            job_state(&boss, "job-1").await["state"] == "done"
        })
        .await;
        assert_eq!(reputation_score(&hub, &worker).await, 51.0);
        assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(a_report_at_the_end_of_a_lease_keeps_the_job, |hub| async {
    // Every report renews the lease: an accepted one is not followed by the loss of the job.
    const JOBS: usize = 24;
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let ids: Vec<String> = (0..JOBS).map(|turn| format!("job-{turn}")).collect();
    for id in &ids {
        publish(&boss, id, json!({"deadline_ms": 3_600_000})).await;
        assert_ok(&act(&worker, id, "claim").await);
    }
    hub.advance(Duration::from_secs(301));
    let notes = [
        json!({"status": "PENDING", "progress": "half of it"}),
        json!({"status": "PENDING", "question": "which half?"}),
    ];
    let reports = ids.iter().zip(notes.iter().cycle());
    let reports = reports.map(|(id, note)| report(&worker, id, note));
    let reports = futures_util::future::join_all(reports);
    let (answers, ()) = futures_util::future::join(reports, hub.maintain()).await;
    hub.maintain().await;
    for (id, answer) in ids.iter().zip(answers) {
        let job = job_state(&boss, id).await;
        match answer.status {
            200 => assert_eq!(job["agent_id"], "worker-1", "{job}"),
            _ => {
                assert_market_refused(&answer, 404, "ERR_NOT_FOUND");
                assert_eq!(job["state"], "open", "{job}");
            }
        }
    }
    assert_eq!(reputation_score(&hub, &worker).await, 50.0);
});

story!(who_gave_a_job_back_does_not_get_it_again, |hub| async {
    //
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let other = register_trader(&hub, "worker-2", skill_offer(0.15), None).await;
    publish(&boss, "job-1", json!({})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    let decline = json!({"status": "FAILURE", "error_code": "BUDGET_INSUFFICIENT"});
    assert_ok(&report(&worker, "job-1", &decline).await);
    let again = act(&worker, "job-1", "claim").await;
    assert_market_refused(&again, 403, "ERR_FORBIDDEN");
    let late = report(&worker, "job-1", &success_result(0.10)).await;
    assert_market_refused(&late, 404, "ERR_NOT_FOUND");
    // The price is that of the agent that does it.
    assert_ok(&act(&other, "job-1", "claim").await);
    assert_ok(&report(&other, "job-1", &success_result(0.15)).await);
    assert_eq!(balance_and_held(&hub, &worker).await, (100.0, 0.0));
    assert_eq!(balance_and_held(&hub, &other).await, (100.15, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(a_question_keeps_a_claimed_job_from_lapsing, |hub| async {
    // The requester takes its time; with the answer a new lease begins.
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({"deadline_ms": 3_600_000})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    let question = json!({"status": "PENDING", "question": "Which?"});
    assert_ok(&report(&worker, "job-1", &question).await);
    hub.advance(Duration::from_secs(900));
    hub.maintain().await;
    let job = job_state(&boss, "job-1").await;
    assert_eq!(
        (&job["state"], &job["agent_id"]),
        (&json!("input-required"), &json!("worker-1"))
    );
    let answer = json!({"answer": "This."});
    assert_ok(&boss.post("/jobs/job-1/answer", &answer).await);
    let mut bosses = boss.inbox().await;
    let mut workers = worker.inbox().await;
    hub.advance(Duration::from_secs(301));
    hub.maintain().await;
    // Both are told that the job is on the board again.
    for inbox in [&mut bosses, &mut workers] {
        let told = inbox.next("job_update").await.data;
        let update = &told["timeline"][0];
        assert_eq!(
            (&told["state"], &update["kind"], &update["agent_id"]),
            (&json!("open"), &json!("lapsed"), &json!("worker-1"))
        );
    }
    assert_eq!(job_state(&boss, "job-1").await["state"], "open");
    assert_eq!(reputation_score(&hub, &worker).await, 50.0);
});

story!(an_answer_after_the_deadline_is_none, |hub| async {
    // past its deadline a job ends by itself, whether the hub has looked or not
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    let question = json!({"status": "PENDING", "question": "Which?"});
    assert_ok(&report(&worker, "job-1", &question).await);
    hub.advance(Duration::from_secs(600));
    let late = boss
        .post("/jobs/job-1/answer", &json!({"answer": "This."}))
        .await;
    assert_market_refused(&late, 409, "ERR_JOB_CLOSED");
    hub.maintain().await;
    assert_eq!(job_state(&boss, "job-1").await["state"], "expired");
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
});

story!(an_approved_delivery_is_paid_what_it_cost, |hub| async {
    // the cost that the worker reported, not the price of its skill
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    publish(&boss, "job-1", json!({"approve_within_ms": 60_000})).await;
    assert_ok(&act(&worker, "job-1", "claim").await);
    assert_ok(&report(&worker, "job-1", &success_result(0.03)).await);
    assert_ok(&act(&boss, "job-1", "approve").await);
    assert_eq!(balance_and_held(&hub, &worker).await, (100.03, 0.0));
    assert_eq!(balance_and_held(&hub, &boss).await, (99.97, 0.0));
    assert_credits_conserved(&hub).await;
});
