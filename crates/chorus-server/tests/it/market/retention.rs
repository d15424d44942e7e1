//! Retention in the market: old jobs and postings are deleted, and every balance can still be recomputed (D-33).

use crate::support::actors::Agent;
use crate::support::actors::database::read_number;
use crate::support::actors::market::{
    assert_market_refused, balance_and_held, job_request, job_state, register_requester,
    register_worker, reputation_score, request_job, success_result,
};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn cents(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 100.0).round() as i64
}

/// Everything in the ledger, page by page.
async fn postings(hub: &Hub) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let before = all
            .last()
            .map(|last| format!("&before={}", last["id"]))
            .unwrap_or_default();
        let page = hub
            .operator()
            .get(&format!("/audit?limit=3{before}"))
            .await
            .json();
        let page = page["postings"].as_array().unwrap().clone();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// The kinds of all postings, newest first.
async fn posting_kinds(hub: &Hub) -> Vec<Value> {
    postings(hub)
        .await
        .iter()
        .map(|posting| posting["kind"].clone())
        .collect()
}

/// The postings alone say what each of these has, and what there is, is what was issued.
async fn rebuilt(hub: &Hub, agents: &[&Agent]) {
    let (mut owned, mut held) = (
        BTreeMap::<String, i64>::new(),
        BTreeMap::<String, i64>::new(),
    );
    let mut issued = 0;
    for posting in postings(hub).await {
        let entries = posting["entries"].as_array().unwrap();
        assert_eq!(
            entries
                .iter()
                .map(|entry| cents(&entry["amount"]))
                .sum::<i64>(),
            0,
            "{posting}"
        );
        for entry in entries {
            let amount = cents(&entry["amount"]);
            let owner = || entry["owner_id"].as_str().unwrap().to_owned();
            match entry["account"].as_str().unwrap() {
                "issue" => issued -= amount,
                "owner" => *owned.entry(owner()).or_default() += amount,
                _ => *held.entry(owner()).or_default() += amount,
            }
        }
    }
    for agent in agents {
        let owner = format!("owner-of-{}", agent.id);
        let (balance, waits) = balance_and_held(hub, agent).await;
        let there = |sums: &BTreeMap<String, i64>| {
            sums.get(&owner).copied().unwrap_or_default() as f64 / 100.0
        };
        assert_eq!((there(&owned), there(&held)), (balance, waits), "{owner}");
    }
    let economy = hub.anonymous().get("/economy").await.json();
    assert_eq!(issued, cents(&economy["issued"]), "{economy}");
    assert_eq!(
        owned.values().sum::<i64>() + held.values().sum::<i64>(),
        issued
    );
}

async fn pays(from: &Agent, id: &str, to: &Agent, amount: f64) -> Value {
    let body = json!({"transfer_id": id, "from_owner": format!("owner-of-{}", from.id),
        "to_owner": format!("owner-of-{}", to.id), "amount": amount});
    let answer = from.post("/transfer", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn done(boss: &Agent, worker: &Agent, id: &str) {
    // after days of silence it says that it is there.
    worker.get("/jobs").await;
    request_job(boss, &job_request(id)).await;
    assert_eq!(
        worker
            .post(&format!("/jobs/{id}/result"), &success_result(0.10))
            .await
            .status,
        200
    );
}

/// The job "old" is deleted, "newer" and "long" are kept, and one opening posting stands for each old balance.
async fn assert_old_part_compacted(hub: &Hub, boss: &Agent, worker: &Agent) {
    assert_market_refused(&boss.get("/jobs/old").await, 404, "ERR_NOT_FOUND");
    assert_eq!(job_state(worker, "newer").await["state"], "done");
    assert_eq!(
        job_state(boss, "long").await["state"],
        "dispatched",
        "it has not ended"
    );
    rebuilt(hub, &[boss, worker]).await;
    let kinds = posting_kinds(hub).await;
    assert_eq!(
        kinds,
        ["release", "pay", "hold", "opening", "opening", "opening"]
    );
    let own = worker.get("/audit").await.json();
    assert_eq!(
        own["postings"][1]["entries"][1],
        json!({"account": "owner", "owner_id": "owner-of-worker-1", "amount": 102.6})
    );
}

story!(
    old_jobs_and_postings_go_and_every_balance_stays,
    with(|set| set.hub.retain = Some(2 * DAY)),
    |hub| async {
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        done(&boss, &worker, "old").await;
        pays(&boss, "rent", &worker, 2.5).await;
        // Asked for long ago and open for long: its money is in the part that is folded.
        let mut long = job_request("long");
        long["deadline_ms"] = json!(6 * DAY.as_millis() as u64);
        request_job(&boss, &long).await;
        rebuilt(&hub, &[&boss, &worker]).await;
        let (before, reputation) = (
            [
                balance_and_held(&hub, &boss).await,
                balance_and_held(&hub, &worker).await,
            ],
            reputation_score(&hub, &worker).await,
        );

        hub.advance(DAY);
        hub.maintain().await;
        assert_eq!(
            job_state(&boss, "old").await["state"],
            "done",
            "one day is not two"
        );
        assert!(!posting_kinds(&hub).await.contains(&json!("opening")));

        hub.advance(2 * DAY);
        done(&boss, &worker, "newer").await;
        hub.maintain().await;
        assert_old_part_compacted(&hub, &boss, &worker).await;
        let [(boss_had, held), (worker_had, _)] = before;
        assert_eq!(
            balance_and_held(&hub, &boss).await,
            ((boss_had * 100.0 - 10.0).round() / 100.0, held)
        );
        assert_eq!(
            balance_and_held(&hub, &worker).await,
            ((worker_had * 100.0 + 10.0).round() / 100.0, 0.0)
        );
        assert!(
            reputation_score(&hub, &worker).await > reputation,
            "a score outlives the jobs it came from"
        );

        // The old money is still money: what was held is paid, and folded in its turn.
        assert_eq!(
            worker
                .post("/jobs/long/result", &success_result(0.10))
                .await
                .status,
            200
        );
        rebuilt(&hub, &[&boss, &worker]).await;
        hub.advance(10 * DAY);
        hub.maintain().await;
        rebuilt(&hub, &[&boss, &worker]).await;
        let left = posting_kinds(&hub).await;
        assert_eq!(
            left.len(),
            4,
            "two owners, a hold that the last posting empties, and that one: {left:?}"
        );
        hub.restart().await;
        let (boss, worker) = (hub.reconnect(&boss), hub.reconnect(&worker));
        done(&boss, &worker, "after").await;
        rebuilt(&hub, &[&boss, &worker]).await;
    }
);

story!(
    a_transfer_is_known_again_for_at_least_a_day,
    with(|set| set.hub.retain = Some(Duration::from_secs(1))),
    |hub| async {
        // however little is kept, a client that tries again pays once.
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let first = pays(&boss, "rent", &worker, 2.5).await;
        pays(&boss, "newest", &worker, 1.0).await;
        hub.advance(DAY - Duration::from_secs(1));
        hub.maintain().await;
        assert_eq!(pays(&boss, "rent", &worker, 2.5).await, first);
        assert_eq!(balance_and_held(&hub, &boss).await.0, 96.5);
        hub.advance(Duration::from_secs(3));
        hub.maintain().await;
        rebuilt(&hub, &[&boss, &worker]).await;
        pays(&boss, "rent", &worker, 2.5).await;
        assert_eq!(
            balance_and_held(&hub, &boss).await.0,
            94.0,
            "a day later the id is free, and this is another payment"
        );
        rebuilt(&hub, &[&boss, &worker]).await;
    }
);

story!(
    the_days_of_a_hirer_are_merged_and_the_hirer_is_counted_once,
    with(|set| set.hub.retain = Some(2 * DAY)),
    |hub| async {
        // what a score rests on is kept by day for 30 days, whatever is retained; after that only who has hired
        const ROWS: &str = "select count(*) from hirer_days";
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        for day in 0..3 {
            done(&boss, &worker, &format!("job-{day}")).await;
            hub.advance(DAY);
        }
        hub.advance(20 * DAY);
        hub.maintain().await;
        assert_eq!(read_number(&hub, ROWS).await, 3);
        let stats = async || {
            let reputation = hub.anonymous().get("/reputation/worker-1").await.json();
            reputation["stats"].clone()
        };
        assert_eq!(stats().await["last_30_days"]["successes"], 3);
        hub.advance(20 * DAY);
        hub.maintain().await;
        assert_eq!(read_number(&hub, ROWS).await, 1);
        done(&boss, &worker, "job-3").await;
        let stats = stats().await;
        assert_eq!(
            (&stats["successes"], &stats["distinct_hirers"]),
            (&json!(4), &json!(1))
        );
        assert_eq!(stats["earned"], 0.4);
        assert_eq!(stats["last_30_days"]["successes"], 1);
        assert_eq!(read_number(&hub, ROWS).await, 2);
    }
);
