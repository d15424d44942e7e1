//! How jobs end: by a result, by expiry or by cancellation, and who is notified (R-62, R-72).

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, reputation_score, request_job,
    skill_offer, success_result,
};
use crate::support::actors::{Agent, Answer, Reply, Webhook};
use crate::support::hub::eventually;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

story!(
    a_failure_costs_nothing_and_lowers_the_score_once,
    |hub| async {
        // R-62; failure 23
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        request_job(&boss, &job_request("job-1")).await;
        let failure = json!({"status": "FAILURE", "output_data": null, "execution_cost": 0.10, "error_message": "no figures"});
        let first = worker.post("/jobs/job-1/result", &failure).await;
        assert_eq!(first.status, 200);
        // R-27: a worker that has not heard the answer reports the same again.
        let again = worker.post("/jobs/job-1/result", &failure).await;
        assert_eq!((again.status, &again.text), (200, &first.text));
        let mut other_failure = failure.clone();
        other_failure["error_message"] = json!("no text");
        for other in [&other_failure, &success_result(0.10)] {
            assert_market_refused(
                &worker.post("/jobs/job-1/result", other).await,
                409,
                "ERR_JOB_CLOSED",
            );
        }
        let known = job_state(&boss, "job-1").await;
        assert_eq!(
            (&known["error_message"], &known["error_code"]),
            (&json!("no figures"), &json!("EXECUTION_ERROR"))
        );
        assert_eq!(
            (
                balance_and_held(&hub, &boss).await,
                balance_and_held(&hub, &worker).await
            ),
            ((100.0, 0.0), (100.0, 0.0))
        );
        assert_eq!(reputation_score(&hub, &worker).await, 45.5);
        assert_credits_conserved(&hub).await;
    }
);

story!(
    the_first_of_two_results_stands_also_when_they_race,
    |hub| async {
        // R-62; failure 21
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        request_job(&boss, &job_request("job-1")).await;
        let bodies: Vec<_> = (1..=10)
            .map(|n| {
                let mut body = success_result(0.10);
                body["output_data"] = json!({"entities": [n]});
                body
            })
            .collect();
        let reports = bodies
            .iter()
            .map(|body| worker.post("/jobs/job-1/result", body));
        let answers = futures_util::future::join_all(reports).await;
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 200).count(),
            1
        );
        for late in answers.iter().filter(|answer| answer.status != 200) {
            assert_market_refused(late, 409, "ERR_JOB_CLOSED");
        }
        assert_eq!(
            (
                balance_and_held(&hub, &worker).await,
                reputation_score(&hub, &worker).await
            ),
            ((100.10, 0.0), 51.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    the_same_result_again_is_answered_as_the_first_time_and_paid_once,
    |hub| async {
        // R-27, R-62
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        request_job(&boss, &job_request("job-1")).await;
        let body = success_result(0.10);
        let reports = (0..10).map(|_| worker.post("/jobs/job-1/result", &body));
        let answers = futures_util::future::join_all(reports).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
        }
        assert_eq!(
            (
                balance_and_held(&hub, &worker).await,
                reputation_score(&hub, &worker).await
            ),
            ((100.10, 0.0), 51.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    of_a_result_and_a_cancellation_that_race_one_stands,
    |hub| async {
        // R-62; failure 21
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let (mut paid, body) = (0, success_result(0.10));
        for turn in 0..10 {
            let id = format!("job-{turn}");
            request_job(&boss, &job_request(&id)).await;
            let path = format!("/jobs/{id}/result");
            let reported = worker.post(&path, &body);
            let cancelled = Answer::of(boss.request("POST", &format!("/jobs/{id}/cancel")));
            let (reported, cancelled) = futures_util::future::join(reported, cancelled).await;
            let (won, lost) = if reported.status == 200 {
                (reported, cancelled)
            } else {
                (cancelled, reported)
            };
            assert_market_refused(&lost, 409, "ERR_JOB_CLOSED");
            assert_eq!(job_state(&boss, &id).await["state"], won.json()["state"]);
            paid += i32::from(won.json()["state"] == "done");
        }
        let had = |cents: i32| f64::from(cents) / 100.0;
        assert_eq!(
            balance_and_held(&hub, &boss).await,
            (had(10_000 - 10 * paid), 0.0)
        );
        assert_eq!(
            balance_and_held(&hub, &worker).await,
            (had(10_000 + 10 * paid), 0.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(nothing_above_the_budget_is_ever_paid, |hub| async {
    // Failure 22
    let (boss, worker) = (
        register_requester(&hub).await,
        register_worker(&hub, "worker-1").await,
    );
    request_job(&boss, &job_request("job-1")).await;
    assert_market_refused(
        &worker
            .post("/jobs/job-1/result", &success_result(0.16))
            .await,
        400,
        "BUDGET_INSUFFICIENT",
    );
    for cost in ["0.105", "-0.10", "\"0.10\"", "1e-1", "NaN"] {
        let body = format!(r#"{{"status":"SUCCESS","output_data":{{}},"execution_cost":{cost}}}"#);
        assert_market_refused(
            &worker.post_text("/jobs/job-1/result", body).await,
            400,
            "ERR_VALIDATION",
        );
    }
    // R-86: PENDING says that the worker is still at it
    let pending = json!({"status": "PENDING"});
    assert_eq!(
        worker.post("/jobs/job-1/result", &pending).await.status,
        200
    );
    // What was refused has changed nothing: the worker may still say it right. Without a cost it is the offered one.
    assert_eq!(job_state(&boss, "job-1").await["status"], "PENDING");
    let free = json!({"status": "SUCCESS", "output_data": {"entities": []}});
    assert_eq!(worker.post("/jobs/job-1/result", &free).await.status, 200);
    assert_eq!(balance_and_held(&hub, &worker).await, (100.10, 0.0));
    assert_credits_conserved(&hub).await;
});

story!(
    a_cancelled_job_gives_its_budget_back_and_changes_no_score,
    |hub| async {
        // R-62
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut workers = worker.inbox().await;
        request_job(&boss, &job_request("job-1")).await;
        workers.next("job").await;
        let answer = Answer::of(boss.request("POST", "/jobs/job-1/cancel")).await;
        assert_eq!(
            (answer.status, &answer.json()["state"]),
            (200, &json!("cancelled")),
            "{answer:?}"
        );
        assert_eq!(workers.next("job_result").await.data["state"], "cancelled");
        assert_market_refused(
            &worker
                .post("/jobs/job-1/result", &success_result(0.10))
                .await,
            409,
            "ERR_JOB_CLOSED",
        );
        assert_market_refused(
            &Answer::of(boss.request("POST", "/jobs/job-1/cancel")).await,
            409,
            "ERR_JOB_CLOSED",
        );
        assert_eq!(
            (
                balance_and_held(&hub, &boss).await,
                reputation_score(&hub, &worker).await
            ),
            ((100.0, 0.0), 50.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_job_without_a_result_expires_at_its_deadline_and_a_late_result_is_none,
    |hub| async {
        // R-62
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut bosses = boss.inbox().await;
        let mut short = job_request("job-1");
        short["deadline_ms"] = json!(5_000);
        request_job(&boss, &short).await;
        request_job(&boss, &job_request("job-2")).await;
        hub.advance(Duration::from_secs(5));
        // Whichever is first: the sweep, or the worker that is too late.
        assert_market_refused(
            &worker
                .post("/jobs/job-1/result", &success_result(0.10))
                .await,
            409,
            "ERR_JOB_CLOSED",
        );
        let told = bosses.next("job_result").await;
        assert_eq!(
            (&told.data["state"], &told.data["status"]),
            (&json!("expired"), &json!("FAILURE"))
        );
        hub.advance(Duration::from_secs(595));
        let told = bosses.next("job_result").await;
        assert_eq!(
            (&told.data["job_id"], &told.data["state"]),
            (&json!("job-2"), &json!("expired"))
        );
        assert_eq!(
            (
                balance_and_held(&hub, &boss).await,
                reputation_score(&hub, &worker).await
            ),
            ((100.0, 0.0), 41.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_job_that_never_reached_its_worker_says_nothing_about_it,
    |hub| async {
        // R-62, D-96: its endpoint is so busy with others that the deadline comes first
        let endpoint = Webhook::replying(Reply::held_ok()).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let boss = register_requester(&hub).await;
        let slow = register_trader(&hub, "slow-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_request("job-1")).await;
        assert_eq!(job_state(&boss, "job-1").await["state"], "held");
        hub.advance(Duration::from_secs(600));
        hub.maintain().await;
        eventually("it has ended", async || {
            job_state(&boss, "job-1").await["state"] == "expired"
        })
        .await;
        assert_eq!(
            (
                balance_and_held(&hub, &boss).await,
                reputation_score(&hub, &slow).await
            ),
            ((100.0, 0.0), 50.0)
        );
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_result_is_posted_to_the_callback_until_it_is_taken,
    |hub| async {
        // R-62, R-72
        let posted = Arc::new(AtomicUsize::new(0));
        let count = posted.clone();
        let mut callback = Webhook::script(move |turn| {
            count.store(turn + 1, Ordering::SeqCst);
            if turn < 2 {
                Reply::typed(503, "text/plain", "later")
            } else {
                Reply::ok()
            }
        })
        .await;
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut body = job_request("job-1");
        body["callback_url"] = json!(callback.url());
        request_job(&boss, &body).await;
        assert_eq!(
            worker
                .post("/jobs/job-1/result", &success_result(0.10))
                .await
                .status,
            200
        );
        eventually("it is posted three times", async || {
            hub.advance(Duration::from_secs(1));
            hub.maintain().await;
            posted.load(Ordering::SeqCst) == 3
        })
        .await;
        for _ in 0..3 {
            let heard = callback.next_request().await.json();
            assert_eq!(
                (&heard["job_id"], &heard["status"]),
                (&json!("job-1"), &json!("SUCCESS"))
            );
        }
        hub.advance(Duration::from_secs(3_600));
        hub.maintain().await;
        assert_eq!(
            posted.load(Ordering::SeqCst),
            3,
            "what was taken is not posted again"
        );
    }
);

story!(
    a_callback_that_is_never_accepted_is_given_up_after_a_day_with_a_notice,
    |hub| async {
        // R-72
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let mut body = job_request("job-1");
        body["callback_url"] = json!("http://127.0.0.1:1/results");
        request_job(&boss, &body).await;
        assert_eq!(
            worker
                .post("/jobs/job-1/result", &success_result(0.10))
                .await
                .status,
            200
        );
        hub.maintain().await;
        hub.advance(Duration::from_secs(24 * 3600));
        eventually("it is given up", async || {
            hub.operator()
                .activity(0)
                .await
                .iter()
                .any(|row| row["type"] == "job_callback_failed")
        })
        .await;
        assert_eq!(job_state(&boss, "job-1").await["status"], "SUCCESS");
    }
);

story!(
    a_restart_in_the_middle_loses_neither_job_nor_money,
    |hub| async {
        // R-62, R-72
        let mut callback = Webhook::replying(Reply::ok()).await;
        let endpoint = Webhook::replying(Reply::held_ok()).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let slow = register_trader(&hub, "slow-1", skill_offer(0.10), Some(&url)).await;
        let quick = register_worker(&hub, "quick-1").await;
        let to = |id: &str, agent: &Agent| {
            let mut body = job_request(id);
            (body["agent_id"], body["callback_url"]) = (json!(agent.id), json!(callback.url()));
            body
        };
        let (first, second) = (to("job-1", &slow), to("job-2", &quick));
        request_job(&boss, &first).await;
        request_job(&boss, &second).await;
        hub.restart().await;
        let (boss, slow, quick) = (
            hub.reconnect(&boss),
            hub.reconnect(&slow),
            hub.reconnect(&quick),
        );
        assert_eq!(balance_and_held(&hub, &boss).await, (99.70, 0.30));
        // The job whose dispatch was cut short is dispatched again once its lease has expired.
        let mut endpoint = endpoint;
        endpoint.next_request().await;
        hub.advance(Duration::from_secs(61));
        hub.maintain().await;
        assert_eq!(endpoint.next_request().await.json()["job_id"], "job-1");
        for (worker, id) in [(&slow, "job-1"), (&quick, "job-2")] {
            let answer = worker
                .post(&format!("/jobs/{id}/result"), &success_result(0.10))
                .await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(callback.next_request().await.json()["job_id"], id);
        }
        assert_eq!(balance_and_held(&hub, &boss).await, (99.80, 0.0));
        assert_credits_conserved(&hub).await;
    }
);
