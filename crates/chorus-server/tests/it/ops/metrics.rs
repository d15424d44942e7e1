//! The metrics as scrapers read them.
//!
//! Counts are of the whole process, in which `cargo test` runs other stories at the same time. So a story compares what it
//! reads before and after, and expects a rise of at least its own.

use crate::support::actors::market::{
    job_request, register_requester, register_worker, request_job, success_result,
};
use crate::support::hub::{Hub, eventually};
use serde_json::json;
use std::time::Duration;

/// What `GET /metrics` answered.
struct Scrape {
    text: String,
}

impl Scrape {
    async fn read(hub: &Hub) -> Self {
        Self {
            text: hub.anonymous().get("/metrics").await.text,
        }
    }

    /// The value of a metric with its labels, if it was ever set.
    fn find(&self, name: &str) -> Option<f64> {
        let mut lines = self.text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(value.parse().expect("a number"))
    }

    fn assert_risen_by(&self, least: f64, name: &str, before: &Self) {
        let (Some(now), then) = (self.find(name), before.find(name).unwrap_or_default()) else {
            panic!("{name} is not in {}", self.text)
        };
        assert!(now - then >= least, "{name}: {then}, then {now}");
    }
}

memory_story!(every_metric_has_a_help_text, |hub| async {
    // `promtool check metrics` asks for them
    let alice = hub.agent("alice").await;
    let _frames = alice.stream("/handles/~alice/stream").await;
    alice.send_advisory("~alice", "hello").await;
    let text = hub.anonymous().get("/metrics").await.text;
    let names = |prefix: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        let mut names: Vec<String> = lines
            .filter_map(|line| line.split(' ').next().map(str::to_owned))
            .collect();
        names.sort();
        names
    };
    let types = names("# TYPE ");
    assert!(types.contains(&"chorus_frame_streams".to_owned()), "{text}");
    assert_eq!(names("# HELP "), types);
});

// OPS-01
memory_story!(what_is_promised_is_counted, |hub| async {
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    let before = Scrape::read(&hub).await;
    let sent = alice.send_expecting(&bob.id, "while away", "queued").await;
    let _inbox = bob.inbox().await;
    alice
        .send_expecting(&bob.id, "while listening", "delivered_sse")
        .await;
    bob.mark_shown(&sent["trace_id"]).await.data(200);
    let after = Scrape::read(&hub).await;
    for (name, least) in [
        (r#"chorus_messages_total{delivery="queued"}"#, 1.0),
        (r#"chorus_messages_total{delivery="delivered"}"#, 1.0),
        ("chorus_message_shown_seconds_count", 1.0),
        ("chorus_commit_seconds_count", 2.0),
    ] {
        after.assert_risen_by(least, name, &before);
    }
    let streams = after.find("chorus_inbox_streams");
    assert!(streams >= Some(1.0), "{streams:?}");
    assert!(after.find("chorus_outbox_pending").is_some());
    let version = format!(
        r#"chorus_build_info{{version="{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(after.find(&version), Some(1.0));
    // No name of an agent is a label.
    assert!(!after.text.contains("alice"), "{}", after.text);
});

sqlite_story!(a_leap_of_the_clock_is_counted, |hub| async {
    // D-123: an operator has to learn that the clock of the machine was set
    hub.maintain().await;
    let before = Scrape::read(&hub).await;
    hub.leap(3_600 * 1_000_000);
    hub.maintain().await;
    hub.maintain().await;
    let after = Scrape::read(&hub).await;
    after.assert_risen_by(1.0, "chorus_clock_leaps_total", &before);
});

// OPS-01, R-72
memory_story!(ended_jobs_and_given_up_posts_are_counted, |hub| async {
    let boss = register_requester(&hub).await;
    let worker = register_worker(&hub, "worker-1").await;
    let before = Scrape::read(&hub).await;
    let mut reported = job_request("job-1");
    reported["callback_url"] = json!("http://127.0.0.1:1/results");
    for body in [reported, job_request("job-2")] {
        request_job(&boss, &body).await;
    }
    let answer = worker
        .post("/jobs/job-1/result", &success_result(0.10))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = boss.post("/jobs/job-2/cancel", &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    hub.maintain().await;
    hub.advance(Duration::from_secs(24 * 3_600));
    eventually("the post to the callback is given up", async || {
        let activity = hub.operator().activity(0).await;
        activity
            .iter()
            .any(|row| row["type"] == "job_callback_failed")
    })
    .await;
    let after = Scrape::read(&hub).await;
    for name in [
        r#"chorus_jobs_total{end="done"}"#,
        r#"chorus_jobs_total{end="cancelled"}"#,
        "chorus_outbox_given_up_total",
    ] {
        after.assert_risen_by(1.0, name, &before);
    }
});
