//! Jobs: requested, held, dispatched and paid, with the credits accounted for at every step.

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::examples::example;
use serde_json::{Value, json};
use std::time::Duration;

story!(
    a_job_travels_by_inbox_is_paid_and_its_rest_comes_back,
    |hub| async {
        // JOB-17, JOB-19, R-61, R-62
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let (mut bosses, mut workers) = (boss.inbox().await, worker.inbox().await);
        let asked = request_job(&boss, &job_request("job-1")).await;
        assert_eq!(
            (&asked["agent_id"], &asked["state"]),
            (&json!("worker-1"), &json!("dispatched"))
        );
        assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));

        let heard = workers.next("job").await;
        for key in [
            "job_id",
            "orchestrator_id",
            "skill_name",
            "input_data",
            "budget",
            "currency",
            "callback_url",
            "timestamp_utc",
        ] {
            assert!(heard.data.get(key).is_some(), "{key}: {}", heard.text);
        }
        assert!(
            heard
                .text
                .contains("\"budget\":0.15,\"currency\":\"chorus_credits_v1\""),
            "{}",
            heard.text
        );
        let answer = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (200, &json!("SUCCESS")),
            "{answer:?}"
        );

        let told = bosses.next("job_result").await;
        assert_eq!(
            (&told.data["job_id"], &told.data["status"]),
            (&json!("job-1"), &json!("SUCCESS"))
        );
        assert_eq!(told.data["output_data"]["entities"][0], 42000);
        assert!(told.data["error_message"].is_null());
        assert_eq!(balance_and_held(&hub, &boss).await, (99.90, 0.0));
        assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
        assert_eq!(reputation_score(&hub, &worker).await, 51.0);
        let known = job_state(&boss, "job-1").await;
        assert_eq!(
            (
                &known["state"],
                &known["execution_cost"],
                &known["execution_time_ms"]
            ),
            (&json!("done"), &json!(0.1), &json!(12))
        );
        assert_eq!(known["input_data"]["text"], "Revenue was $42,000");
        assert_credits_conserved(&hub).await;
    }
);

story!(
    the_printed_job_and_result_are_taken_as_printed,
    |hub| async {
        // JOB-16…19: the ids of the document are put in place of its word "uuid", nothing else
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut printed = example("jobs-protocol/3.3-job.json");
        (printed["job_id"], printed["orchestrator_id"]) = (
            json!("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
            json!("boss-1"),
        );
        request_job(&boss, &printed).await;
        let mut result = example("jobs-protocol/3.4-result.json");
        (result["job_id"], result["agent_id"]) = (printed["job_id"].clone(), json!("worker-1"));
        let answer = worker
            .post("/jobs/f81d4fae-7dec-11d0-a765-00a0c91e6bf6/result", &result)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let known = job_state(&boss, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6").await;
        for key in [
            "status",
            "output_data",
            "execution_cost",
            "execution_time_ms",
            "error_message",
        ] {
            assert_eq!(known[key], result[key], "{key}");
        }
        assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    }
);

story!(strangers_neither_see_nor_touch_a_job, |hub| async {
    // Failure 6
    let (boss, worker) = (
        register_requester(&hub).await,
        register_worker(&hub, "worker-1").await,
    );
    let stranger = register_trader(&hub, "stranger-1", json!([]), None).await;
    request_job(&boss, &job_request("job-1")).await;
    assert_market_refused(&stranger.get("/jobs/job-1").await, 404, "ERR_NOT_FOUND");
    assert_market_refused(
        &stranger
            .post("/jobs/job-1/result", &success_result(0.10))
            .await,
        404,
        "ERR_NOT_FOUND",
    );
    assert_market_refused(
        &stranger.post("/jobs/job-1/cancel", &json!({})).await,
        404,
        "ERR_NOT_FOUND",
    );
    assert_market_refused(
        &boss.post("/jobs/job-1/result", &success_result(0.10)).await,
        403,
        "ERR_FORBIDDEN",
    );
    assert_market_refused(
        &worker.post("/jobs/job-1/cancel", &json!({})).await,
        403,
        "ERR_FORBIDDEN",
    );
    for path in ["/jobs", "/jobs/job-1"] {
        assert_market_refused(&hub.anonymous().get(path).await, 401, "ERR_UNAUTHORIZED");
    }
    // A stranger cannot take the id over, nor act for another agent.
    assert_market_refused(
        &stranger.post("/jobs", &job_request("job-1")).await,
        409,
        "ERR_JOB_CONFLICT",
    );
    let mut forged = job_request("job-2");
    forged["orchestrator_id"] = json!("boss-1");
    assert_market_refused(&stranger.post("/jobs", &forged).await, 403, "ERR_FORBIDDEN");
    let mut result = success_result(0.10);
    result["agent_id"] = json!("stranger-1");
    assert_market_refused(
        &worker.post("/jobs/job-1/result", &result).await,
        403,
        "ERR_FORBIDDEN",
    );
    assert_eq!(hub.operator().get("/jobs/job-1").await.status, 200);
    assert_eq!(job_state(&worker, "job-1").await["status"], "PENDING");
});

story!(
    what_cannot_be_done_is_refused_before_anyone_is_charged,
    |hub| async {
        // JOB-27, JOB-28, JOB-31
        let (boss, _worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let with = |key: &str, value: Value| {
            let mut body = job_request("job-1");
            body[key] = value;
            body
        };
        for (body, status, code) in [
            (
                with("skill_name", json!("unheard_of")),
                400,
                "SKILL_MISMATCH",
            ),
            (with("agent_id", json!("boss-1")), 400, "SKILL_MISMATCH"),
            (
                with("agent_id", json!("absent-1")),
                404,
                "ERR_AGENT_NOT_FOUND",
            ),
            (with("budget", json!(0.09)), 400, "BUDGET_INSUFFICIENT"),
            (with("budget", json!(100.01)), 400, "TRANSFER_FAILED"),
            (with("budget", json!(0)), 400, "BUDGET_INSUFFICIENT"),
            (with("budget", json!(-1)), 400, "ERR_VALIDATION"),
            (with("budget", json!("0.15")), 400, "ERR_VALIDATION"),
            (with("budget", json!(0.155)), 400, "ERR_VALIDATION"),
            (with("currency", json!("euro")), 400, "ERR_VALIDATION"),
            (with("job_id", json!("a b")), 400, "ERR_VALIDATION"),
            (with("deadline_ms", json!(0)), 400, "ERR_VALIDATION"),
            (
                with("callback_url", json!("ftp://x/")),
                400,
                "ERR_VALIDATION",
            ),
            (
                with("timestamp_utc", json!("yesterday")),
                400,
                "ERR_VALIDATION",
            ),
            (with("priority", json!(1)), 400, "ERR_VALIDATION"),
        ] {
            assert_market_refused(&boss.post("/jobs", &body).await, status, code);
        }
        let wrong_input = boss
            .post("/jobs", &with("input_data", json!({"text": 7})))
            .await;
        assert_eq!(wrong_input.status, 400, "{wrong_input:?}");
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(boss.get("/jobs").await.json(), json!({"jobs": []}));
    }
);

story!(an_agent_that_fell_silent_is_not_hired, |hub| async {
    // JOB-29, R-66
    let (boss, worker) = (
        register_requester(&hub).await,
        register_worker(&hub, "worker-1").await,
    );
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    hub.advance(Duration::from_secs(91));
    assert_market_refused(
        &boss.post("/jobs", &job_request("job-1")).await,
        409,
        "AGENT_OFFLINE",
    );
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    request_job(&boss, &job_request("job-1")).await;
});

story!(
    a_repeated_request_is_the_same_job_and_another_with_its_id_is_none,
    |hub| async {
        let (boss, _worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let first = request_job(&boss, &job_request("job-1")).await;
        let bodies = [
            job_request("job-1"),
            job_request("job-1"),
            job_request("job-1"),
        ];
        let again =
            futures_util::future::join_all(bodies.iter().map(|body| boss.post("/jobs", body)))
                .await;
        assert!(
            again
                .iter()
                .all(|answer| answer.status == 202 && answer.json() == first),
            "{again:?}"
        );
        let mut other = job_request("job-1");
        other["budget"] = json!(0.20);
        assert_market_refused(&boss.post("/jobs", &other).await, 409, "ERR_JOB_CONFLICT");
        assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    of_many_that_race_for_the_last_credits_as_many_win_as_there_is_money,
    with(|settings| {
        settings.hub.opening_grant = chorus_wire::credits::Credits::from_hundredths(150);
    }),
    |hub| async {
        let (boss, _worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let bodies: Vec<Value> = (0..40)
            .map(|turn| job_request(&format!("job-{turn}")))
            .collect();
        let answers =
            futures_util::future::join_all(bodies.iter().map(|body| boss.post("/jobs", body)))
                .await;
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 202).count(),
            10
        );
        for short in answers.iter().filter(|answer| answer.status != 202) {
            assert_market_refused(short, 400, "TRANSFER_FAILED");
        }
        assert_eq!(balance_and_held(&hub, &boss).await, (0.0, 1.5));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    the_best_match_is_hired_and_never_a_random_agent,
    |hub| async {
        // R-62, JOB-26
        let boss = register_requester(&hub).await;
        register_trader(&hub, "dear-1", skill_offer(0.15), None).await;
        register_trader(&hub, "cheap-1", skill_offer(0.05), None).await;
        assert_eq!(
            request_job(&boss, &job_request("j1")).await["agent_id"],
            "cheap-1"
        );
        let mut named = job_request("j2");
        named["agent_id"] = json!("dear-1");
        assert_eq!(request_job(&boss, &named).await["agent_id"], "dear-1");
        // Without an id the hub gives one.
        let mut anonymous = job_request("j3");
        anonymous.as_object_mut().unwrap().remove("job_id");
        let given = request_job(&boss, &anonymous).await;
        assert_eq!(given["job_id"].as_str().unwrap().len(), 36);
    }
);

story!(
    a_job_without_end_has_numbers_and_no_callback_if_empty,
    |hub| async {
        // JOB-19, R-103: public clients read numbers in every result, and send an empty callback for none
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut request = job_request("job-1");
        request["callback_url"] = json!("");
        let pending = request_job(&boss, &request).await;
        assert_eq!(pending["execution_cost"], json!(0.0));
        assert_eq!(pending["execution_time_ms"], json!(0));
        let result = success_result(0.10);
        let answer = worker.post("/jobs/job-1/result", &result).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        request["job_id"] = json!("job-2");
        request["callback_url"] = json!("nowhere");
        assert_market_refused(&boss.post("/jobs", &request).await, 400, "ERR_VALIDATION");
    }
);
