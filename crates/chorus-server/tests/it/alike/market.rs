//! Skills, jobs from request to result, credits and what is kept of them.

use super::tale::{Tale, ask};
use crate::actors::market::{skill, success};
use crate::actors::{Reply, Webhook};
use crate::hub::OPERATOR_KEY;
use serde_json::{Value, json};
use std::time::Duration;

pub async fn tell(tale: &mut Tale) {
    let (boss, worker) = (
        trader(tale, "boss-1", json!([])).await,
        trader(tale, "worker-1", skill(0.10)).await,
    );
    skills(tale, &boss, &worker).await;
    let mut place = Webhook::that(Reply::json(200, "{}")).await;
    tale.names
        .call(&format!("127.0.0.1:{}", place.port()), "bosss-place");
    jobs(tale, &boss, &worker, &mut place).await;
    endings(tale, &boss, &worker).await;
    credits(tale, &boss, &worker).await;
}

async fn trader(tale: &mut Tale, id: &str, skills: Value) -> String {
    let body = json!({"agent_id": id, "agent_name": id, "owner_id": format!("owner-of-{id}"), "skills": skills});
    tale.post("", "/register", &body)
        .await
        .is(201)
        .at("/api_key")
}

async fn skills(tale: &mut Tale, boss: &str, worker: &str) {
    tale.post(
        "",
        "/register",
        &json!({"agent_id": "w-2", "skills": [{"skill_name": "s", "cost_per_call": 0}]}),
    )
    .await
    .is(400);
    for path in [
        "/skills",
        "/skills?limit=0",
        "/discover?skill=analyze_text",
        "/discover?skill=analyze_text&max_cost=0.01",
        "/discover?skill=x&max_cost=x",
        "/reputation/worker-1",
        "/reputation/nobody",
        "/reputation/%00",
        "/economy",
        "/economy?x=%zz",
    ] {
        for key in ["", boss] {
            tale.get(key, path).await;
        }
    }
    let adding =
        json!({"description": "Adds", "cost_per_call": 0.10, "input_schema": {"a": "number"}});
    for (key, name, body) in [
        (worker, "adding", adding.clone()),
        (worker, "adding", adding.clone()),
        (worker, "adding", json!({"cost_per_call": 0})),
        (worker, "%00", adding.clone()),
        ("", "adding", adding.clone()),
        (OPERATOR_KEY, "adding", adding),
    ] {
        tale.put(key, &format!("/skills/{name}"), &body).await;
    }
    tale.get("", "/skills").await.is(200);
    for (key, name) in [
        (worker, "adding"),
        (worker, "adding"),
        (worker, "%00"),
        ("", "adding"),
    ] {
        tale.delete(key, &format!("/skills/{name}")).await;
    }
    for (key, body) in [
        (worker, json!({"agent_id": "worker-1", "load": 0.5})),
        (worker, json!({"agent_id": "boss-1"})),
        (worker, json!({"agent_id": 5})),
        ("", json!({})),
    ] {
        tale.post(key, "/heartbeat", &body).await;
    }
}

fn job(id: &str) -> Value {
    json!({"job_id": id, "skill_name": "analyze_text", "input_data": {"text": "Revenue"}, "budget": 0.15})
}

async fn jobs(tale: &mut Tale, boss: &str, worker: &str, place: &mut Webhook) {
    let mut inbox = tale.opens(ask("GET", "/agent/inbox").key(worker)).await;
    let mut hers = tale.opens(ask("GET", "/agent/inbox").key(boss)).await;
    let mut first = job("job-1");
    first["callback_url"] = json!(place.url());
    for body in [&first, &first, &job("job-1")] {
        tale.post(boss, "/jobs", body).await;
    }
    tale.hears(&mut inbox, 1).await;
    for (field, value) in [
        ("skill_name", json!("none")),
        ("budget", json!(0.01)),
        ("budget", json!("much")),
        ("input_data", json!({"text": 5})),
        ("job_id", json!("a\u{0}b")),
        ("agent_id", json!("nobody")),
        ("callback_url", json!("ftp://x/")),
        ("budget", json!(100_000)),
    ] {
        let mut bad = job("job-x");
        bad[field] = value;
        tale.post(boss, "/jobs", &bad).await;
    }
    tale.post("", "/jobs", &job("job-x")).await.is(401);
    tale.post(OPERATOR_KEY, "/jobs", &job("job-x")).await;
    for key in [boss, worker, "", OPERATOR_KEY] {
        for path in [
            "/jobs/job-1",
            "/jobs/none",
            "/jobs/%00",
            "/jobs",
            "/jobs?role=worker&status=PENDING&limit=1",
            "/jobs?role=x",
            "/jobs?before=job-1",
            "/jobs?before=none",
            "/jobs?before=%00",
        ] {
            tale.get(key, path).await;
        }
    }
    tale.post(worker, "/jobs/job-1/result", &success(0.16))
        .await
        .is(400);
    tale.post(boss, "/jobs/job-1/result", &success(0.10)).await;
    tale.post(worker, "/jobs/none/result", &success(0.10))
        .await
        .is(404);
    tale.post(worker, "/jobs/%00/result", &success(0.10)).await;
    tale.post(worker, "/jobs/job-1/result", &success(0.10))
        .await
        .is(200);
    tale.hears(&mut hers, 1).await;
    let heard = place.hears().await;
    tale.enter(
        "heard at the boss's",
        &format!("{}\n\n{}", heard.head, heard.text),
    );
    tale.post(worker, "/jobs/job-1/result", &success(0.10))
        .await
        .is(409);
    tale.get(boss, "/jobs/job-1").await.is(200);
}

async fn endings(tale: &mut Tale, boss: &str, worker: &str) {
    for id in ["job-2", "job-3", "job-4"] {
        tale.post(boss, "/jobs", &job(id)).await.is(202);
    }
    tale.post(worker, "/jobs/job-2/cancel", &json!({})).await;
    tale.post("", "/jobs/job-2/cancel", &json!({}))
        .await
        .is(401);
    for _ in 0..2 {
        tale.post(boss, "/jobs/job-2/cancel", &json!({})).await;
    }
    tale.post(boss, "/jobs/%00/cancel", &json!({})).await;
    let failure = json!({"status": "FAILURE", "output_data": null, "error_message": "no figures"});
    tale.post(worker, "/jobs/job-3/result", &failure)
        .await
        .is(200);
    tale.hub.advance(Duration::from_secs(601));
    tale.hub.maintain().await;
    tale.until(boss, "/jobs/job-4", |body| body["status"] == "FAILURE")
        .await;
    for query in ["", "?status=FAILURE", "?limit=2", "?limit=1&before=job-3"] {
        tale.get(boss, &format!("/jobs{query}")).await.is(200);
    }
    tale.get("", "/reputation/worker-1").await.is(200);
}

async fn credits(tale: &mut Tale, boss: &str, worker: &str) {
    let transfer = json!({"transfer_id": "t-1", "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-1", "amount": 2.5, "job_id": "uuid"});
    for key in [boss, worker, "", OPERATOR_KEY] {
        tale.post(key, "/transfer", &transfer).await;
        tale.post(key, "/transfer", &json!({"amount": -1})).await;
        for path in [
            "/accounts/owner-of-boss-1",
            "/accounts/nobody",
            "/accounts/%00",
            "/audit",
            "/audit?limit=2",
            "/audit?owner_id=owner-of-worker-1",
            "/audit?job_id=job-1",
            "/audit?limit=0",
            "/audit?job_id=%00",
            "/audit?before=3",
        ] {
            tale.get(key, path).await;
        }
        for (owner, body) in [
            (
                "owner-of-boss-1",
                json!({"amount": 5.25, "reason": "invoice 7"}),
            ),
            ("owner-of-boss-1", json!({"amount": "much"})),
            ("nobody", json!({"amount": 1})),
            ("%00", json!({"amount": 1})),
        ] {
            tale.post(key, &format!("/accounts/{owner}/credit"), &body)
                .await;
        }
    }
    tale.get("", "/economy").await.is(200);
}
