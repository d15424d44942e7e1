//! Jobs: asked for, held, handed over and paid, with the money where it belongs at every step (R-62).

use crate::actors::market::{
    boss, conserved, hired, job, purse, refused, score, skill, standing, success, trader, worker,
};
use crate::actors::{Agent, Answer, Reply, Webhook};
use crate::examples::example;
use crate::hub::eventually;
use serde_json::{Value, json};
use std::time::Duration;

story!(
    a_job_travels_by_inbox_is_paid_and_its_rest_comes_back,
    |hub| async {
        // JOB-17, JOB-19, R-61, R-62
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let (mut bosses, mut workers) = (boss.inbox().await, worker.inbox().await);
        let asked = hired(&boss, &job("job-1")).await;
        assert_eq!(
            (&asked["agent_id"], &asked["state"]),
            (&json!("worker-1"), &json!("dispatched"))
        );
        assert_eq!(purse(&hub, &boss).await, (99.85, 0.15));

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
        let answer = worker.post("/jobs/job-1/result", &success(0.10)).await;
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
        assert_eq!(purse(&hub, &boss).await, (99.90, 0.0));
        assert_eq!(purse(&hub, &worker).await, (100.10, 0.0));
        assert_eq!(score(&hub, &worker).await, 51.0);
        let known = standing(&boss, "job-1").await;
        assert_eq!(
            (
                &known["state"],
                &known["execution_cost"],
                &known["execution_time_ms"]
            ),
            (&json!("done"), &json!(0.1), &json!(12))
        );
        assert_eq!(known["input_data"]["text"], "Revenue was $42,000");
        conserved(&hub).await;
    }
);

story!(
    the_printed_job_and_result_are_taken_as_printed,
    |hub| async {
        // JOB-16…19: the ids of the document are put in place of its word "uuid", nothing else
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let mut printed = example("jobs-protocol/3.3-job.json");
        (printed["job_id"], printed["orchestrator_id"]) = (
            json!("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
            json!("boss-1"),
        );
        hired(&boss, &printed).await;
        let mut result = example("jobs-protocol/3.4-result.json");
        (result["job_id"], result["agent_id"]) = (printed["job_id"].clone(), json!("worker-1"));
        let answer = worker
            .post("/jobs/f81d4fae-7dec-11d0-a765-00a0c91e6bf6/result", &result)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let known = standing(&boss, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6").await;
        for key in [
            "status",
            "output_data",
            "execution_cost",
            "execution_time_ms",
            "error_message",
        ] {
            assert_eq!(known[key], result[key], "{key}");
        }
        assert_eq!(purse(&hub, &worker).await, (100.10, 0.0));
    }
);

story!(a_worker_with_an_endpoint_may_answer_at_once, |hub| async {
    // R-61, R-62
    let reply = r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.05,"execution_time_ms":3,"error_message":null}"#;
    let mut endpoint = Webhook::that(Reply::json(200, reply)).await;
    let boss = boss(&hub).await;
    let worker = trader(
        &hub,
        "worker-1",
        skill(0.10),
        Some(&format!("http://127.0.0.1:{}", endpoint.port())),
    )
    .await;
    let mut bosses = boss.inbox().await;
    hired(&boss, &job("job-1")).await;
    let heard = endpoint.hears().await;
    assert!(heard.head.starts_with("POST /jobs "), "{}", heard.head);
    assert_eq!(heard.json()["job_id"], "job-1");
    assert_eq!(bosses.next("job_result").await.data["status"], "SUCCESS");
    assert_eq!(purse(&hub, &worker).await, (100.05, 0.0));
    conserved(&hub).await;
});

story!(a_worker_with_an_endpoint_may_take_its_time, |hub| async {
    // JOB-32
    let mut endpoint =
        Webhook::that(Reply::json(202, r#"{"job_id":"job-1","status":"PENDING"}"#)).await;
    let boss = boss(&hub).await;
    let worker = trader(
        &hub,
        "worker-1",
        skill(0.10),
        Some(&format!("http://127.0.0.1:{}/v1/jobs", endpoint.port())),
    )
    .await;
    hired(&boss, &job("job-1")).await;
    assert!(endpoint.hears().await.head.starts_with("POST /v1/jobs "));
    eventually("it is dispatched", async || {
        standing(&boss, "job-1").await["state"] == "dispatched"
    })
    .await;
    assert_eq!(
        worker
            .post("/jobs/job-1/result", &success(0.10))
            .await
            .status,
        200
    );
    assert_eq!(standing(&boss, "job-1").await["status"], "SUCCESS");
});

story!(
    an_endpoint_that_is_not_there_makes_its_agent_offline_and_costs_nothing,
    |hub| async {
        // R-66, JOB-29
        let boss = boss(&hub).await;
        let worker = trader(
            &hub,
            "worker-1",
            skill(0.10),
            Some("http://127.0.0.1:1/jobs"),
        )
        .await;
        hired(&boss, &job("job-1")).await;
        eventually("it has failed", async || {
            standing(&boss, "job-1").await["state"] == "failed"
        })
        .await;
        let known = standing(&boss, "job-1").await;
        assert_eq!(
            (&known["status"], &known["error_code"]),
            (&json!("FAILURE"), &json!("AGENT_OFFLINE"))
        );
        assert_eq!(purse(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(score(&hub, &worker).await, 50.0);
        refused(
            &boss.post("/jobs", &job("job-2")).await,
            409,
            "AGENT_OFFLINE",
        );
        conserved(&hub).await;
    }
);

story!(
    an_endpoint_that_breaks_or_says_no_fails_the_job,
    |hub| async {
        // JOB-30
        let endpoint = Webhook::script(|turn| match turn {
            0 => Reply::typed(500, "text/plain", "oh"),
            1 => Reply::json(
                400,
                r#"{"error_code":"SKILL_MISMATCH","error_message":"not today"}"#,
            ),
            _ => Reply::json(
                200,
                r#"{"status":"SUCCESS","output_data":1,"execution_cost":0.16}"#,
            ),
        })
        .await;
        let boss = boss(&hub).await;
        let worker = trader(
            &hub,
            "worker-1",
            skill(0.10),
            Some(&format!("http://127.0.0.1:{}", endpoint.port())),
        )
        .await;
        for (id, code) in [
            ("j1", "EXECUTION_ERROR"),
            ("j2", "SKILL_MISMATCH"),
            ("j3", "EXECUTION_ERROR"),
        ] {
            hired(&boss, &job(id)).await;
            eventually("it has failed", async || {
                standing(&boss, id).await["state"] == "failed"
            })
            .await;
            assert_eq!(standing(&boss, id).await["error_code"], code, "{id}");
        }
        assert_eq!(purse(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(score(&hub, &worker).await, 50.0 - 3.0 * 4.5);
        conserved(&hub).await;
    }
);

story!(strangers_neither_see_nor_touch_a_job, |hub| async {
    // Failure 6
    let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
    let stranger = trader(&hub, "stranger-1", json!([]), None).await;
    hired(&boss, &job("job-1")).await;
    refused(&stranger.get("/jobs/job-1").await, 404, "ERR_NOT_FOUND");
    refused(
        &stranger.post("/jobs/job-1/result", &success(0.10)).await,
        404,
        "ERR_NOT_FOUND",
    );
    refused(
        &stranger.post("/jobs/job-1/cancel", &json!({})).await,
        404,
        "ERR_NOT_FOUND",
    );
    refused(
        &boss.post("/jobs/job-1/result", &success(0.10)).await,
        403,
        "ERR_FORBIDDEN",
    );
    refused(
        &worker.post("/jobs/job-1/cancel", &json!({})).await,
        403,
        "ERR_FORBIDDEN",
    );
    for path in ["/jobs", "/jobs/job-1"] {
        refused(&hub.anyone().get(path).await, 401, "ERR_UNAUTHORIZED");
    }
    // A stranger cannot take the id over, nor speak for somebody else.
    refused(
        &stranger.post("/jobs", &job("job-1")).await,
        409,
        "ERR_JOB_CONFLICT",
    );
    let mut forged = job("job-2");
    forged["orchestrator_id"] = json!("boss-1");
    refused(&stranger.post("/jobs", &forged).await, 403, "ERR_FORBIDDEN");
    let mut result = success(0.10);
    result["agent_id"] = json!("stranger-1");
    refused(
        &worker.post("/jobs/job-1/result", &result).await,
        403,
        "ERR_FORBIDDEN",
    );
    assert_eq!(hub.operator().get("/jobs/job-1").await.status, 200);
    assert_eq!(standing(&worker, "job-1").await["status"], "PENDING");
});

story!(
    what_cannot_be_done_is_refused_before_anyone_is_charged,
    |hub| async {
        // JOB-27, JOB-28, JOB-31
        let (boss, _worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let with = |key: &str, value: Value| {
            let mut body = job("job-1");
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
                with("agent_id", json!("nobody-1")),
                404,
                "ERR_AGENT_NOT_FOUND",
            ),
            (with("budget", json!(0.09)), 400, "BUDGET_INSUFFICIENT"),
            (with("budget", json!(100.01)), 400, "TRANSFER_FAILED"),
            (with("budget", json!(0)), 400, "ERR_VALIDATION"),
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
            refused(&boss.post("/jobs", &body).await, status, code);
        }
        let wrong_input = boss
            .post("/jobs", &with("input_data", json!({"text": 7})))
            .await;
        assert_eq!(wrong_input.status, 400, "{wrong_input:?}");
        assert_eq!(purse(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(boss.get("/jobs").await.json(), json!({"jobs": []}));
    }
);

story!(an_agent_that_fell_silent_is_not_hired, |hub| async {
    // JOB-29, R-66
    let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    hub.advance(Duration::from_secs(91));
    refused(
        &boss.post("/jobs", &job("job-1")).await,
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
    hired(&boss, &job("job-1")).await;
});

story!(
    a_repeated_request_is_the_same_job_and_another_with_its_id_is_none,
    |hub| async {
        let (boss, _worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let first = hired(&boss, &job("job-1")).await;
        let bodies = [job("job-1"), job("job-1"), job("job-1")];
        let again =
            futures_util::future::join_all(bodies.iter().map(|body| boss.post("/jobs", body)))
                .await;
        assert!(
            again
                .iter()
                .all(|answer| answer.status == 202 && answer.json() == first),
            "{again:?}"
        );
        let mut other = job("job-1");
        other["budget"] = json!(0.20);
        refused(&boss.post("/jobs", &other).await, 409, "ERR_JOB_CONFLICT");
        assert_eq!(purse(&hub, &boss).await, (99.85, 0.15));
        conserved(&hub).await;
    }
);

story!(
    of_many_that_race_for_the_last_credits_as_many_win_as_there_is_money,
    with(|settings| {
        settings.hub.opening_grant = chorus_wire::market::credits::Credits::hundredths(150);
    }),
    |hub| async {
        let (boss, _worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let bodies: Vec<Value> = (0..40).map(|turn| job(&format!("job-{turn}"))).collect();
        let answers =
            futures_util::future::join_all(bodies.iter().map(|body| boss.post("/jobs", body)))
                .await;
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 202).count(),
            10
        );
        for short in answers.iter().filter(|answer| answer.status != 202) {
            refused(short, 400, "TRANSFER_FAILED");
        }
        assert_eq!(purse(&hub, &boss).await, (0.0, 1.5));
        conserved(&hub).await;
    }
);

story!(
    my_jobs_are_listed_by_part_and_status_newest_first,
    |hub| async {
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        for id in ["j1", "j2", "j3"] {
            hired(&boss, &job(id)).await;
        }
        assert_eq!(
            worker.post("/jobs/j1/result", &success(0.10)).await.status,
            200
        );
        assert_eq!(
            Answer::of(boss.request("POST", "/jobs/j2/cancel"))
                .await
                .status,
            200
        );
        let ids = async |of: &Agent, query: &str| {
            let answer = of.get(&format!("/jobs{query}")).await.json();
            let jobs = answer["jobs"].as_array().unwrap().clone();
            jobs.iter()
                .map(|job| job["job_id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (query, found) in [
            ("", "j3 j2 j1"),
            ("?role=orchestrator", "j3 j2 j1"),
            ("?role=worker", ""),
            ("?status=PENDING", "j3"),
            ("?status=SUCCESS", "j1"),
            ("?status=FAILURE", "j2"),
            ("?status=cancelled", "j2"),
            ("?limit=1", "j3"),
            ("?limit=1&before=j3", "j2"),
        ] {
            assert_eq!(ids(&boss, query).await, found, "{query}");
        }
        assert_eq!(ids(&worker, "?role=worker&status=PENDING").await, "j3");
        for bad in ["?role=boss", "?status=pending", "?limit=0"] {
            refused(
                &boss.get(&format!("/jobs{bad}")).await,
                400,
                "ERR_VALIDATION",
            );
        }
        refused(&boss.get("/jobs?before=j9").await, 404, "ERR_NOT_FOUND");
        let economy = hub.anyone().get("/economy").await.json();
        assert_eq!(
            economy["jobs"],
            json!({"PENDING": 1, "SUCCESS": 1, "FAILURE": 1})
        );
        assert_eq!(economy["volume"], json!(0.1));
    }
);

story!(
    the_best_match_is_hired_and_nobody_is_hired_by_chance,
    |hub| async {
        // R-62, JOB-26
        let boss = boss(&hub).await;
        trader(&hub, "dear-1", skill(0.15), None).await;
        trader(&hub, "cheap-1", skill(0.05), None).await;
        assert_eq!(hired(&boss, &job("j1")).await["agent_id"], "cheap-1");
        let mut named = job("j2");
        named["agent_id"] = json!("dear-1");
        assert_eq!(hired(&boss, &named).await["agent_id"], "dear-1");
        // Without an id the hub gives one.
        let mut anonymous = job("j3");
        anonymous.as_object_mut().unwrap().remove("job_id");
        let given = hired(&boss, &anonymous).await;
        assert_eq!(given["job_id"].as_str().unwrap().len(), 36);
    }
);

story!(
    a_callback_into_a_private_network_is_refused,
    with(|settings| settings.hub.allow_private_endpoints = false),
    |hub| async {
        // Failure 3
        let (boss, _worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        for url in ["http://127.0.0.1/x", "http://[::1]/x", "http://10.0.0.1/x"] {
            let mut body = job("job-1");
            body["callback_url"] = json!(url);
            refused(
                &boss.post("/jobs", &body).await,
                400,
                "ERR_ENDPOINT_BLOCKED",
            );
        }
        assert_eq!(purse(&hub, &boss).await, (100.0, 0.0));
    }
);

story!(a_job_of_others_is_no_place_to_go_on_from, |hub| async {
    // R-62: that it exists is already news
    let (boss, worker, stranger) = (
        boss(&hub).await,
        worker(&hub, "worker-1").await,
        hub.agent("stranger").await,
    );
    hired(&boss, &job("job-1")).await;
    for party in [&boss, &worker] {
        assert_eq!(
            party.get("/jobs?before=job-1").await.json(),
            json!({"jobs": []})
        );
    }
    let (known, unknown) = (
        stranger.get("/jobs?before=job-1").await,
        stranger.get("/jobs?before=job-2").await,
    );
    assert_eq!((known.status, known.text), (unknown.status, unknown.text));
});
