//! Jobs of workers with an endpoint: answered at once, answered later, failed or unreachable (R-62).

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::actors::{Reply, Webhook};
use crate::support::hub::eventually;
use serde_json::json;

story!(a_worker_with_an_endpoint_may_answer_at_once, |hub| async {
    // R-61, R-62
    let reply = r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.05,"execution_time_ms":3,"error_message":null}"#;
    let mut endpoint = Webhook::replying(Reply::json(200, reply)).await;
    let boss = register_requester(&hub).await;
    let worker = register_trader(
        &hub,
        "worker-1",
        skill_offer(0.10),
        Some(&format!("http://127.0.0.1:{}", endpoint.port())),
    )
    .await;
    let mut bosses = boss.inbox().await;
    request_job(&boss, &job_request("job-1")).await;
    let heard = endpoint.next_request().await;
    assert!(heard.head.starts_with("POST /jobs "), "{}", heard.head);
    assert_eq!(heard.json()["job_id"], "job-1");
    assert_eq!(bosses.next("job_result").await.data["status"], "SUCCESS");
    assert_eq!(balance_and_held(&hub, &worker).await, (100.05, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(a_worker_with_an_endpoint_may_take_its_time, |hub| async {
    // JOB-32
    let mut endpoint =
        Webhook::replying(Reply::json(202, r#"{"job_id":"job-1","status":"PENDING"}"#)).await;
    let boss = register_requester(&hub).await;
    let worker = register_trader(
        &hub,
        "worker-1",
        skill_offer(0.10),
        Some(&format!("http://127.0.0.1:{}/v1/jobs", endpoint.port())),
    )
    .await;
    request_job(&boss, &job_request("job-1")).await;
    assert!(
        endpoint
            .next_request()
            .await
            .head
            .starts_with("POST /v1/jobs ")
    );
    eventually("it is dispatched", async || {
        job_state(&boss, "job-1").await["state"] == "dispatched"
    })
    .await;
    assert_eq!(
        worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await
            .status,
        200
    );
    assert_eq!(job_state(&boss, "job-1").await["status"], "SUCCESS");
});

story!(
    an_endpoint_that_is_not_there_makes_its_agent_offline_and_costs_nothing,
    |hub| async {
        // R-66, JOB-29
        let boss = register_requester(&hub).await;
        let worker = register_trader(
            &hub,
            "worker-1",
            skill_offer(0.10),
            Some("http://127.0.0.1:1/jobs"),
        )
        .await;
        request_job(&boss, &job_request("job-1")).await;
        eventually("it has failed", async || {
            job_state(&boss, "job-1").await["state"] == "failed"
        })
        .await;
        let known = job_state(&boss, "job-1").await;
        assert_eq!(
            (&known["status"], &known["error_code"]),
            (&json!("FAILURE"), &json!("AGENT_OFFLINE"))
        );
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(reputation_score(&hub, &worker).await, 50.0);
        assert_market_refused(
            &boss.post("/jobs", &job_request("job-2")).await,
            409,
            "AGENT_OFFLINE",
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    an_endpoint_that_breaks_or_says_no_fails_the_job,
    |hub| async {
        // JOB-30
        let endpoint = Webhook::script(|turn| match turn {
            0 => Reply::typed(500, "text/plain", "oh"),
            _ => Reply::json(
                400,
                r#"{"error_code":"OUT_OF_INK","error_message":"not today"}"#,
            ),
        })
        .await;
        let boss = register_requester(&hub).await;
        let worker = register_trader(
            &hub,
            "worker-1",
            skill_offer(0.10),
            Some(&format!("http://127.0.0.1:{}", endpoint.port())),
        )
        .await;
        for (id, code) in [("j1", "EXECUTION_ERROR"), ("j2", "OUT_OF_INK")] {
            request_job(&boss, &job_request(id)).await;
            eventually("it has failed", async || {
                job_state(&boss, id).await["state"] == "failed"
            })
            .await;
            assert_eq!(job_state(&boss, id).await["error_code"], code, "{id}");
        }
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
        assert_eq!(reputation_score(&hub, &worker).await, 50.0 - 2.0 * 4.5);
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_callback_into_a_private_network_is_refused,
    with(|settings| settings.hub.allow_private_endpoints = false),
    |hub| async {
        // Failure 3
        let (boss, _worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        for url in ["http://127.0.0.1/x", "http://[::1]/x", "http://10.0.0.1/x"] {
            let mut body = job_request("job-1");
            body["callback_url"] = json!(url);
            assert_market_refused(
                &boss.post("/jobs", &body).await,
                400,
                "ERR_ENDPOINT_BLOCKED",
            );
        }
        assert_eq!(balance_and_held(&hub, &boss).await, (100.0, 0.0));
    }
);
