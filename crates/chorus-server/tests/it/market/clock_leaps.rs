//! Deadlines, leases and times for approval when the machine's clock leaps: what has passed counts, not what the clock says (D-123).

use crate::support::actors::market::{
    assert_credits_conserved, assert_market_refused, balance_and_held, job_request, job_state,
    register_requester, register_trader, register_worker, request_job, skill_offer, success_result,
};
use crate::support::actors::{Agent, Answer, Reply, Webhook};
use crate::support::hub::YEAR_MICROS;
use serde_json::{Value, json};
use std::time::Duration;

fn job_with_deadline(id: &str, deadline_ms: u64) -> Value {
    let mut job = job_request(id);
    job["deadline_ms"] = json!(deadline_ms);
    job
}

async fn claim_from_board(boss: &Agent, worker: &Agent, mut job: Value) {
    job["board"] = json!(true);
    request_job(boss, &job).await;
    let id = job["job_id"].as_str().unwrap();
    let claimed = Answer::of(worker.request("POST", &format!("/jobs/{id}/claim"))).await;
    assert_eq!(claimed.status, 200, "{claimed:?}");
}

story!(
    a_job_does_not_expire_because_the_clock_leaped,
    |hub| async {
        // D-123
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        for id in ["in-time", "late"] {
            request_job(&boss, &job_with_deadline(id, 600_000)).await;
        }
        hub.leap(YEAR_MICROS);
        // Before the hub has noticed the leap in its background work.
        let report = worker
            .post("/jobs/in-time/result", &success_result(0.10))
            .await;
        assert_eq!(report.status, 200, "{report:?}");
        hub.maintain().await;
        assert_eq!(job_state(&boss, "late").await["status"], "PENDING");
        request_job(&boss, &job_with_deadline("new", 60_000)).await;
        // The deadline of a job from after the leap is a time of the new clock.
        hub.advance(Duration::from_secs(61));
        hub.maintain().await;
        assert_eq!(job_state(&boss, "new").await["state"], "expired");
        assert_eq!(job_state(&boss, "late").await["status"], "PENDING");
        hub.advance(Duration::from_secs(540));
        let report = worker
            .post("/jobs/late/result", &success_result(0.10))
            .await;
        assert_market_refused(&report, 409, "ERR_JOB_CLOSED");
        assert_eq!(job_state(&boss, "late").await["state"], "expired");
        assert_eq!(balance_and_held(&hub, &boss).await, (99.90, 0.0));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_restart_after_a_leap_of_the_clock_closes_no_job,
    |hub| async {
        // D-123: nothing measured the time while the hub was stopped
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        request_job(&boss, &job_with_deadline("job-1", 600_000)).await;
        hub.maintain().await;
        hub.leap(YEAR_MICROS);
        hub.restart().await;
        let (boss, worker) = (hub.reconnect(&boss), hub.reconnect(&worker));
        hub.maintain().await;
        assert_eq!(job_state(&boss, "job-1").await["status"], "PENDING");
        let report = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(report.status, 200, "{report:?}");
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_leap_of_the_clock_ends_neither_a_lease_nor_the_time_for_approval,
    |hub| async {
        // D-123, R-86
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        let mut delivered = job_with_deadline("delivered", 1_200_000);
        delivered["approve_within_ms"] = json!(60_000);
        claim_from_board(&boss, &worker, delivered).await;
        claim_from_board(&boss, &worker, job_with_deadline("claimed", 1_200_000)).await;
        let report = worker
            .post("/jobs/delivered/result", &success_result(0.10))
            .await;
        assert_eq!(report.json()["state"], "delivered", "{report:?}");
        let states = async || {
            let delivered = job_state(&boss, "delivered").await["state"].clone();
            let claimed = job_state(&boss, "claimed").await["state"].clone();
            (delivered, claimed)
        };
        hub.leap(YEAR_MICROS);
        hub.maintain().await;
        assert_eq!(states().await, (json!("delivered"), json!("dispatched")));
        hub.advance(Duration::from_secs(61));
        hub.maintain().await;
        assert_eq!(states().await, (json!("done"), json!("dispatched")));
        hub.advance(Duration::from_secs(240));
        hub.maintain().await;
        assert_eq!(states().await, (json!("done"), json!("open")));
        assert_credits_conserved(&hub).await;
    }
);

story!(
    a_leap_of_the_clock_dispatches_no_job_again_whose_post_is_under_way,
    |hub| async {
        // R-62, D-123
        let mut endpoint = Webhook::replying(Reply::held_ok()).await;
        let url = format!("http://127.0.0.1:{}/jobs", endpoint.port());
        let boss = register_requester(&hub).await;
        register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        request_job(&boss, &job_with_deadline("job-1", 600_000)).await;
        assert_eq!(endpoint.next_request().await.json()["job_id"], "job-1");
        hub.leap(YEAR_MICROS);
        hub.maintain().await;
        // A second post of the first job would have begun before this one.
        request_job(&boss, &job_with_deadline("job-2", 600_000)).await;
        assert_eq!(endpoint.next_request().await.json()["job_id"], "job-2");
        assert!(endpoint.received_nothing());
        // The lease lasts as long as it would have without the leap: the jobs of a hub that stopped are posted again.
        hub.advance(Duration::from_secs(61));
        hub.maintain().await;
        let mut again = Vec::new();
        for _ in 0..2 {
            again.push(endpoint.next_request().await.json()["job_id"].to_string());
        }
        again.sort();
        assert_eq!(again, [r#""job-1""#, r#""job-2""#]);
    }
);

story!(a_day_after_a_leap_the_new_time_closes_jobs, |hub| async {
    // What is longer than the protected time is judged by the clock again
    let boss = register_requester(&hub).await;
    register_worker(&hub, "worker-1").await;
    let two_days_ms = 2 * 86_400_000;
    request_job(&boss, &job_with_deadline("long", two_days_ms)).await;
    hub.leap(YEAR_MICROS);
    hub.maintain().await;
    hub.advance(Duration::from_secs(86_400 - 60));
    hub.maintain().await;
    assert_eq!(job_state(&boss, "long").await["status"], "PENDING");
    hub.advance(Duration::from_secs(60));
    hub.maintain().await;
    assert_eq!(job_state(&boss, "long").await["state"], "expired");
});
