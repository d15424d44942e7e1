//! What a worker may report, by which way, and what it costs it (R-86, R-88).

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::actors::{Answer, Reply, Webhook};
use crate::support::hub::eventually;
use serde_json::{Value, json};
use std::time::Duration;

/// The updates of a job, by kind and text.
fn timeline(job: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    job["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|update| (text(&update["kind"]), text(&update["text"])))
        .collect()
}

story!(jobs_that_wait_come_with_their_input, |hub| async {
    // R-62: a worker that was away does what waits for it
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    request_job(&boss, &job_request("job-1")).await;
    let waiting = worker.get("/jobs?role=worker&status=PENDING").await.json();
    assert_eq!(
        waiting["jobs"][0]["input_data"],
        json!({"text": "Revenue was $42,000"})
    );
    let asked = boss.get("/jobs").await.json();
    assert_eq!(asked["jobs"][0]["input_data"], Value::Null);
    worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    let ended = worker.get("/jobs?role=worker").await.json();
    assert_eq!(ended["jobs"][0]["input_data"], Value::Null);
});

story!(
    a_fault_in_an_answer_is_noted_and_can_be_mended,
    |hub| async {
        // R-86: the field is named, the job stays open, and no score moves
        let faults = [
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.30000000000000004}"#,
                "execution_cost",
            ),
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_time_ms":12.7}"#,
                "execution_time_ms",
            ),
            (
                r#"{"status":"success","output_data":{"entities":[]}}"#,
                "status",
            ),
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"timestamp_utc":"yesterday"}"#,
                "timestamp_utc",
            ),
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"job_id":"another-job"}"#,
                "job_id",
            ),
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"agent_id":"boss-1"}"#,
                "agent_id",
            ),
            (
                r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.11}"#,
                "execution_cost",
            ),
            (
                r#"{"status":"SUCCESS","output_data":"none"}"#,
                "output_data",
            ),
        ];
        let mut endpoint = Webhook::script(move |turn| Reply::json(200, faults[turn].0)).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        for (turn, (_, field)) in faults.iter().enumerate() {
            let id = format!("job-{turn}");
            request_job(&boss, &job_request(&id)).await;
            let callback = endpoint.next_request().await.json()["callback_url"].clone();
            eventually("it is noted", async || {
                !timeline(&job_state(&worker, &id).await).is_empty()
            })
            .await;
            let job = job_state(&worker, &id).await;
            assert_eq!(job["state"], "dispatched", "{field}");
            let updates = timeline(&job);
            assert_eq!(updates.len(), 1, "{updates:?}");
            assert_eq!(updates[0].0, "refused");
            assert!(updates[0].1.contains(field), "{updates:?}");
            // The worker has only the document: it mends its result without a key.
            let path = callback_path(&callback);
            let answer = hub.anonymous().post(&path, &success_result(0.10)).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(job_state(&boss, &id).await["status"], "SUCCESS");
        }
        let rounds = faults.len() as f64;
        assert!((balance_and_held(&hub, &worker).await.0 - 100.0 - rounds * 0.1).abs() < 1e-9);
        assert!(reputation_score(&hub, &worker).await > 50.0);
        assert_credits_conserved(&hub).await;
    }
);

fn callback_path(url: &Value) -> String {
    let url = url.as_str().unwrap();
    let (_, rest) = url.split_once("://").unwrap();
    format!("/{}", rest.split_once('/').unwrap().1)
}

story!(
    a_result_that_breaks_the_promise_of_the_skill_is_refused,
    |hub| async {
        // R-88: the schema is the one of the request
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        request_job(&boss, &job_request("job-1")).await;
        let freer = worker
            .request("PUT", "/skills/analyze_text")
            .json(&json!({"cost_per_call": 0.10}));
        assert_eq!(Answer::of(freer).await.status, 200);
        for output in [
            json!("text"),
            json!({}),
            json!({"entities": 1}),
            json!(null),
        ] {
            let report = json!({"status": "SUCCESS", "output_data": output});
            let answer = worker.post("/jobs/job-1/result", &report).await;
            assert_market_refused(&answer, 400, "ERR_VALIDATION");
            assert!(answer.text.contains("output_data"), "{answer:?}");
        }
        assert_eq!(job_state(&boss, "job-1").await["state"], "dispatched");
        let answer = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
);

story!(
    a_worker_that_has_only_the_document_reports_later,
    |hub| async {
        // R-86, JOB-32: the callback is the credential; PENDING does not use it up, and neither does a refused result
        let mut endpoint = Webhook::replying(Reply::json(202, r#"{"status":"PENDING"}"#)).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_request("job-1")).await;
        let path = callback_path(&endpoint.next_request().await.json()["callback_url"]);
        let stranger = hub.anonymous();
        for (wrong, body) in [
            (path.replace("job-1", "job-2"), success_result(0.10)),
            (format!("{path}0"), success_result(0.10)),
            ("/jobs/job-1/result/x".to_owned(), json!({})),
        ] {
            assert_market_refused(&stranger.post(&wrong, &body).await, 404, "ERR_NOT_FOUND");
        }
        assert_market_refused(
            &stranger
                .post("/jobs/job-1/result", &success_result(0.10))
                .await,
            401,
            "ERR_UNAUTHORIZED",
        );
        let pending = json!({"status": "PENDING", "progress": "half of it"});
        assert_eq!(stranger.post(&path, &pending).await.status, 200);
        assert_eq!(job_state(&boss, "job-1").await["progress"], "half of it");
        let wrong = json!({"status": "SUCCESS", "output_data": 1});
        assert_market_refused(&stranger.post(&path, &wrong).await, 400, "ERR_VALIDATION");
        let answer = stranger.post(&path, &success_result(0.10)).await;
        assert_eq!(answer.json()["status"], "SUCCESS", "{answer:?}");
        // R-27: the same again is answered as the first time.
        let again = stranger.post(&path, &success_result(0.10)).await;
        assert_eq!(again.status, 200, "{again:?}");
        let other = stranger.post(&path, &success_result(0.09)).await;
        assert_market_refused(&other, 409, "ERR_JOB_CLOSED");
        assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    }
);

story!(
    guessed_result_callbacks_are_refused_without_a_lookup,
    with(|set| set.rate_limit = 10),
    |hub| async {
        // D-20: a valid callback from the guessing address is refused too, which shows that none is looked up
        let mut endpoint = Webhook::replying(Reply::json(202, r#"{"status":"PENDING"}"#)).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_request("job-1")).await;
        let path = callback_path(&endpoint.next_request().await.json()["callback_url"]);
        let stranger = hub.anonymous();
        for number in 0..20 {
            let guess = format!("/jobs/job-1/result/{number:032}");
            let status = stranger.post(&guess, &json!({})).await.status;
            assert!(matches!(status, 404 | 429), "{status}");
        }
        let result = success_result(0.10);
        assert_market_refused(
            &stranger.post(&path, &result).await,
            429,
            "ERR_RATE_LIMITED",
        );
        hub.advance(Duration::from_secs(60));
        assert_eq!(stranger.post(&path, &result).await.status, 200);
    }
);

story!(
    an_answer_may_take_as_long_as_the_job,
    with(|settings| settings.hub.webhook_timeout = Duration::from_millis(100)),
    |hub| async {
        // R-86, JOB-19: synchronous work up to the deadline of the job
        let done = r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.10}"#;
        let mut endpoint = Webhook::replying(Reply::held(Reply::json(200, done))).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_request("job-1")).await;
        endpoint.next_request().await;
        eventually("it is dispatched", async || {
            job_state(&boss, "job-1").await["state"] == "dispatched"
        })
        .await;
        endpoint.release();
        eventually("it is done", async || {
            job_state(&boss, "job-1").await["status"] == "SUCCESS"
        })
        .await;
        assert_eq!(reputation_score(&hub, &worker).await, 51.0);
    }
);

story!(
    an_endpoint_is_asked_again_after_a_refusal_and_needs_no_key,
    |hub| async {
        // R-66, R-86: a refused connection is not "offline until further notice"
        let done = r#"{"status":"SUCCESS","output_data":{"entities":[]}}"#;
        let endpoint = Webhook::script(move |turn| match turn {
            0 => Reply::Bytes(Vec::new()),
            _ => Reply::json(200, done),
        })
        .await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_request("job-1")).await;
        eventually("it has failed", async || {
            job_state(&boss, "job-1").await["state"] == "failed"
        })
        .await;
        assert_market_refused(
            &boss.post("/jobs", &job_request("job-2")).await,
            409,
            "AGENT_OFFLINE",
        );
        hub.advance(Duration::from_secs(31));
        request_job(&boss, &job_request("job-3")).await;
        eventually("it is done", async || {
            job_state(&boss, "job-3").await["status"] == "SUCCESS"
        })
        .await;
        // It used its key once, and then only its endpoint answers.
        worker.get("/jobs").await;
        hub.advance(Duration::from_secs(165));
        request_job(&boss, &job_request("job-4")).await;
        eventually("it is done", async || {
            job_state(&boss, "job-4").await["status"] == "SUCCESS"
        })
        .await;
    }
);

story!(declining_costs_nothing, |hub| async {
    // R-86: by a 4xx of the endpoint, or by a FAILURE with the document's code
    let endpoint = Webhook::script(|turn| match turn {
        0 => Reply::json(
            400,
            r#"{"error_code":"BUDGET_INSUFFICIENT","error_message":"too cheap"}"#,
        ),
        1 => Reply::json(
            200,
            r#"{"status":"FAILURE","error_code":"SKILL_MISMATCH","error_message":"not today"}"#,
        ),
        2 => Reply::json(500, r#"{"error_code":"SKILL_MISMATCH"}"#),
        _ => Reply::json(
            200,
            r#"{"status":"FAILURE","error_code":"OTHER","error_message":"oh"}"#,
        ),
    })
    .await;
    let boss = register_requester(&hub).await;
    let url = format!("http://127.0.0.1:{}", endpoint.port());
    let worker = register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
    let mut expected = 50.0;
    for (id, code, lost) in [
        ("j1", "BUDGET_INSUFFICIENT", 0.0),
        ("j2", "SKILL_MISMATCH", 0.0),
        ("j3", "EXECUTION_ERROR", 4.5),
        ("j4", "OTHER", 4.5),
    ] {
        let mut job = job_request(id);
        job["agent_id"] = json!("worker-1");
        request_job(&boss, &job).await;
        eventually("it has failed", async || {
            job_state(&boss, id).await["state"] == "failed"
        })
        .await;
        assert_eq!(job_state(&boss, id).await["error_code"], code, "{id}");
        expected -= lost;
        assert_eq!(reputation_score(&hub, &worker).await, expected, "{id}");
    }
    assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(
    the_next_best_worker_gets_what_another_declined_or_could_not_get,
    |hub| async {
        // R-86: only where the requester named a skill and no worker
        let boss = register_requester(&hub).await;
        let away = register_trader(
            &hub,
            "away",
            skill_offer(0.05),
            Some("http://127.0.0.1:1/jobs"),
        )
        .await;
        let picky = register_trader(&hub, "picky", skill_offer(0.08), None).await;
        let last = register_trader(&hub, "last", skill_offer(0.15), None).await;
        let dear = register_trader(&hub, "dear", skill_offer(9.0), None).await;
        let mut lasts = last.inbox().await;
        request_job(&boss, &job_request("job-1")).await;
        eventually("the second has it", async || {
            job_state(&boss, "job-1").await["agent_id"] == "picky"
        })
        .await;
        let decline = json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH", "error_message": "no figures"});
        assert_eq!(picky.post("/jobs/job-1/result", &decline).await.status, 200);
        let job = lasts.next("job").await.data;
        assert_eq!(job["job_id"], "job-1");
        let updates = timeline(&job_state(&boss, "job-1").await);
        let kinds: Vec<_> = updates.iter().map(|update| update.0.as_str()).collect();
        assert_eq!(kinds, ["unreachable", "declined"]);
        for former in [&away, &picky] {
            let answer = former
                .post("/jobs/job-1/result", &success_result(0.05))
                .await;
            assert_market_refused(&answer, 404, "ERR_NOT_FOUND");
        }
        let answer = last.post("/jobs/job-1/result", &success_result(0.15)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(balance_and_held(&hub, &last).await, (100.15, 0.0));
        assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.0));
        for former in [&away, &picky, &dear] {
            assert_eq!(reputation_score(&hub, former).await, 50.0);
        }
        // No other agent takes it for the budget.
        request_job(&boss, &job_request("job-2")).await;
        for worker in [&last, &picky] {
            eventually("it has the job", async || {
                job_state(&boss, "job-2").await["agent_id"] == worker.id.as_str()
            })
            .await;
            assert_eq!(
                worker.post("/jobs/job-2/result", &decline).await.status,
                200
            );
        }
        eventually("it has failed", async || {
            job_state(&boss, "job-2").await["state"] == "failed"
        })
        .await;
        assert_eq!(
            job_state(&boss, "job-2").await["error_code"],
            "SKILL_MISMATCH"
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_job_that_expired_or_was_cancelled_has_a_code,
    |hub| async {
        let boss = register_requester(&hub).await;
        register_worker(&hub, "worker-1").await;
        request_job(&boss, &job_request("job-1")).await;
        let cancelled = Answer::of(boss.request("POST", "/jobs/job-1/cancel")).await;
        assert_eq!(cancelled.json()["error_code"], "CANCELLED");
        request_job(&boss, &job_request("job-2")).await;
        hub.advance(Duration::from_secs(601));
        hub.maintain().await;
        eventually("it has expired", async || {
            job_state(&boss, "job-2").await["error_code"] == "DEADLINE"
        })
        .await;
    }
);

story!(nulls_and_times_of_the_document_are_accepted, |hub| async {
    // JOB-04; the document itself prints nulls
    let body = json!({"agent_id": "boss-1", "agent_name": null, "owner_id": "owner-of-boss-1", "api_endpoint": null, "version": null,
        "timestamp_utc": "2026-02-11T14:15:09.123456", "skills": [{"skill_name": "free", "cost_per_call": 0, "description": null,
        "input_schema": null, "output_schema": null}]});
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let key = answer.json()["api_key"].as_str().unwrap().to_owned();
    let boss = crate::support::actors::Agent::new(&hub.anonymous().0, "boss-1", &key);
    register_worker(&hub, "worker-1").await;
    let mut job = job_request("job-1");
    for name in [
        "callback_url",
        "deadline_ms",
        "currency",
        "agent_id",
        "board",
    ] {
        job[name] = Value::Null;
    }
    for (time, status) in [
        ("2026-02-11T14:15:09", 202),
        ("2026-02-11T14:15:09Z", 202),
        ("2026-02-11T14:15:09+00:00", 202),
        ("2026-02-11T14:15:09+02:00", 400),
        ("garbage", 400),
    ] {
        job["timestamp_utc"] = json!(time);
        job["job_id"] = json!(format!("job-{}", time.len()));
        let answer = boss.post("/jobs", &job).await;
        assert_eq!(answer.status, status, "{time}: {answer:?}");
    }
    let mut late = body.clone();
    late["agent_id"] = json!("other");
    late["timestamp_utc"] = json!("garbage");
    let answer = hub.anonymous().post("/register", &late).await;
    assert_eq!(answer.status, 400, "{answer:?}");
});

story!(a_free_skill_costs_nothing, |hub| async {
    // R-87: free work is shown as free
    let boss = register_requester(&hub).await;
    let worker = register_trader(&hub, "worker-1", skill_offer(0.0), None).await;
    let mut job = job_request("job-1");
    job["budget"] = json!(0);
    request_job(&boss, &job).await;
    let answer = worker
        .post("/jobs/job-1/result", &success_result(0.0))
        .await;
    assert_eq!(answer.json()["execution_cost"], 0.0, "{answer:?}");
    for agent in [&boss, &worker] {
        assert_eq!(balance_and_held(&hub, agent).await, (100.0, 0.0));
    }
    let postings = hub.operator().get("/audit?job_id=job-1").await.json();
    assert_eq!(postings["postings"], json!([]));
    assert_credits_conserved(&hub).await;
});
