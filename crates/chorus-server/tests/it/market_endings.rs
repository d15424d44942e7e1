//! How jobs end: by one result, by none in time, by being taken back; and who hears of it (R-62, R-72).

use crate::actors::market::{
    boss, conserved, hired, job, purse, refused, score, skill, standing, success, trader, worker,
};
use crate::actors::{Agent, Answer, Reply, Webhook};
use crate::hub::eventually;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

story!(
    a_failure_costs_nothing_and_lowers_the_score_once,
    |hub| async {
        // R-62; failure 23
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        hired(&boss, &job("job-1")).await;
        let failure = json!({"status": "FAILURE", "output_data": null, "execution_cost": 0.10, "error_message": "no figures"});
        assert_eq!(
            worker.post("/jobs/job-1/result", &failure).await.status,
            200
        );
        for again in [&failure, &success(0.10)] {
            refused(
                &worker.post("/jobs/job-1/result", again).await,
                409,
                "ERR_JOB_CLOSED",
            );
        }
        let known = standing(&boss, "job-1").await;
        assert_eq!(
            (&known["error_message"], &known["error_code"]),
            (&json!("no figures"), &json!("EXECUTION_ERROR"))
        );
        assert_eq!(
            (purse(&hub, &boss).await, purse(&hub, &worker).await),
            ((100.0, 0.0), (100.0, 0.0))
        );
        assert_eq!(score(&hub, &worker).await, 45.5);
        conserved(&hub).await;
    }
);

story!(
    the_first_of_two_results_stands_also_when_they_race,
    |hub| async {
        // R-62; failure 21
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        hired(&boss, &job("job-1")).await;
        let body = success(0.10);
        let reports = (0..10).map(|_| worker.post("/jobs/job-1/result", &body));
        let answers = futures_util::future::join_all(reports).await;
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 200).count(),
            1
        );
        for late in answers.iter().filter(|answer| answer.status != 200) {
            refused(late, 409, "ERR_JOB_CLOSED");
        }
        assert_eq!(
            (purse(&hub, &worker).await, score(&hub, &worker).await),
            ((100.10, 0.0), 51.0)
        );
        conserved(&hub).await;
    }
);

story!(
    of_a_result_and_a_cancellation_that_race_one_stands,
    |hub| async {
        // R-62; failure 21
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let (mut paid, body) = (0, success(0.10));
        for turn in 0..10 {
            let id = format!("job-{turn}");
            hired(&boss, &job(&id)).await;
            let path = format!("/jobs/{id}/result");
            let reported = worker.post(&path, &body);
            let cancelled = Answer::of(boss.request("POST", &format!("/jobs/{id}/cancel")));
            let (reported, cancelled) = futures_util::future::join(reported, cancelled).await;
            let (won, lost) = if reported.status == 200 {
                (reported, cancelled)
            } else {
                (cancelled, reported)
            };
            refused(&lost, 409, "ERR_JOB_CLOSED");
            assert_eq!(standing(&boss, &id).await["state"], won.json()["state"]);
            paid += i32::from(won.json()["state"] == "done");
        }
        let had = |cents: i32| f64::from(cents) / 100.0;
        assert_eq!(purse(&hub, &boss).await, (had(10_000 - 10 * paid), 0.0));
        assert_eq!(purse(&hub, &worker).await, (had(10_000 + 10 * paid), 0.0));
        conserved(&hub).await;
    }
);

story!(nothing_above_the_budget_is_ever_paid, |hub| async {
    // Failure 22
    let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
    hired(&boss, &job("job-1")).await;
    refused(
        &worker.post("/jobs/job-1/result", &success(0.16)).await,
        400,
        "BUDGET_INSUFFICIENT",
    );
    for cost in ["0.105", "-0.10", "\"0.10\"", "1e-1", "NaN"] {
        let body = format!(r#"{{"status":"SUCCESS","output_data":{{}},"execution_cost":{cost}}}"#);
        refused(
            &worker.post_text("/jobs/job-1/result", body).await,
            400,
            "ERR_VALIDATION",
        );
    }
    refused(
        &worker
            .post("/jobs/job-1/result", &json!({"status": "PENDING"}))
            .await,
        400,
        "ERR_VALIDATION",
    );
    // What was refused has changed nothing: the worker may still say it right. Without a cost it is the offered one.
    assert_eq!(standing(&boss, "job-1").await["status"], "PENDING");
    let free = json!({"status": "SUCCESS", "output_data": {}});
    assert_eq!(worker.post("/jobs/job-1/result", &free).await.status, 200);
    assert_eq!(purse(&hub, &worker).await, (100.10, 0.0));
    conserved(&hub).await;
});

story!(
    a_cancelled_job_gives_its_budget_back_and_changes_no_score,
    |hub| async {
        // R-62
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let mut workers = worker.inbox().await;
        hired(&boss, &job("job-1")).await;
        workers.next("job").await;
        let answer = Answer::of(boss.request("POST", "/jobs/job-1/cancel")).await;
        assert_eq!(
            (answer.status, &answer.json()["state"]),
            (200, &json!("cancelled")),
            "{answer:?}"
        );
        assert_eq!(workers.next("job_result").await.data["state"], "cancelled");
        refused(
            &worker.post("/jobs/job-1/result", &success(0.10)).await,
            409,
            "ERR_JOB_CLOSED",
        );
        refused(
            &Answer::of(boss.request("POST", "/jobs/job-1/cancel")).await,
            409,
            "ERR_JOB_CLOSED",
        );
        assert_eq!(
            (purse(&hub, &boss).await, score(&hub, &worker).await),
            ((100.0, 0.0), 50.0)
        );
        conserved(&hub).await;
    }
);

story!(
    a_job_without_a_result_expires_at_its_deadline_and_a_late_result_is_none,
    |hub| async {
        // R-62
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let mut bosses = boss.inbox().await;
        let mut short = job("job-1");
        short["deadline_ms"] = json!(5_000);
        hired(&boss, &short).await;
        hired(&boss, &job("job-2")).await;
        hub.advance(Duration::from_secs(5));
        // Whoever looks first: the sweep, or the worker that is too late.
        refused(
            &worker.post("/jobs/job-1/result", &success(0.10)).await,
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
            (purse(&hub, &boss).await, score(&hub, &worker).await),
            ((100.0, 0.0), 41.0)
        );
        conserved(&hub).await;
    }
);

story!(
    a_job_that_never_reached_its_worker_says_nothing_about_it,
    |hub| async {
        // R-62, D-96: its endpoint is so busy with others that the deadline comes first
        let endpoint = Webhook::that(Reply::held_ok()).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let boss = boss(&hub).await;
        let slow = trader(&hub, "slow-1", skill(0.10), Some(&url)).await;
        hired(&boss, &job("job-1")).await;
        assert_eq!(standing(&boss, "job-1").await["state"], "held");
        hub.advance(Duration::from_secs(600));
        hub.maintain().await;
        eventually("it has ended", async || {
            standing(&boss, "job-1").await["state"] == "expired"
        })
        .await;
        assert_eq!(
            (purse(&hub, &boss).await, score(&hub, &slow).await),
            ((100.0, 0.0), 50.0)
        );
        conserved(&hub).await;
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
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let mut body = job("job-1");
        body["callback_url"] = json!(callback.url());
        hired(&boss, &body).await;
        assert_eq!(
            worker
                .post("/jobs/job-1/result", &success(0.10))
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
            let heard = callback.hears().await.json();
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
    a_callback_that_nobody_takes_is_given_up_after_a_day_aloud,
    |hub| async {
        // R-72
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let mut body = job("job-1");
        body["callback_url"] = json!("http://127.0.0.1:1/results");
        hired(&boss, &body).await;
        assert_eq!(
            worker
                .post("/jobs/job-1/result", &success(0.10))
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
        assert_eq!(standing(&boss, "job-1").await["status"], "SUCCESS");
    }
);

story!(
    a_restart_in_the_middle_loses_neither_job_nor_money,
    |hub| async {
        // R-62, R-72
        let mut callback = Webhook::that(Reply::ok()).await;
        let endpoint = Webhook::that(Reply::held_ok()).await;
        let boss = boss(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        let slow = trader(&hub, "slow-1", skill(0.10), Some(&url)).await;
        let quick = worker(&hub, "quick-1").await;
        let to = |id: &str, agent: &Agent| {
            let mut body = job(id);
            (body["agent_id"], body["callback_url"]) = (json!(agent.id), json!(callback.url()));
            body
        };
        let (first, second) = (to("job-1", &slow), to("job-2", &quick));
        hired(&boss, &first).await;
        hired(&boss, &second).await;
        hub.restart().await;
        let (boss, slow, quick) = (hub.again(&boss), hub.again(&slow), hub.again(&quick));
        assert_eq!(purse(&hub, &boss).await, (99.70, 0.30));
        // The one whose handing over was cut short is handed over again once nobody can be at it any more.
        let mut endpoint = endpoint;
        endpoint.hears().await;
        hub.advance(Duration::from_secs(61));
        hub.maintain().await;
        assert_eq!(endpoint.hears().await.json()["job_id"], "job-1");
        for (worker, id) in [(&slow, "job-1"), (&quick, "job-2")] {
            let answer = worker
                .post(&format!("/jobs/{id}/result"), &success(0.10))
                .await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(callback.hears().await.json()["job_id"], id);
        }
        assert_eq!(purse(&hub, &boss).await, (99.80, 0.0));
        conserved(&hub).await;
    }
);
