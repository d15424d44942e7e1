//! The market part of the script: skills, jobs from request to result, and credits.

use super::transcript::{Transcript, raw_request};
use crate::support::actors::market::{skill_offer, success_result};
use crate::support::actors::{Reply, Webhook};
use crate::support::hub::OPERATOR_KEY;
use serde_json::{Value, json};
use std::time::Duration;

pub async fn run(transcript: &mut Transcript) {
    let (boss, worker) = (
        register_trader(transcript, "boss-1", json!([])).await,
        register_trader(transcript, "worker-1", skill_offer(0.10)).await,
    );
    skills(transcript, &boss, &worker).await;
    let mut place = Webhook::replying(Reply::json(200, "{}")).await;
    transcript
        .placeholders
        .assign(&format!("127.0.0.1:{}", place.port()), "bosss-place");
    jobs(transcript, &boss, &worker, &mut place).await;
    endings(transcript, &boss, &worker).await;
    board(transcript, &boss, &worker).await;
    report_by_callback(transcript, &boss).await;
    credits(transcript, &boss, &worker).await;
}

async fn register_trader(transcript: &mut Transcript, id: &str, skills: Value) -> String {
    let body = json!({"agent_id": id, "agent_name": id, "owner_id": format!("owner-of-{id}"), "skills": skills});
    transcript
        .post("", "/register", &body)
        .await
        .expect_status(201)
        .text_at("/api_key")
}

async fn skills(transcript: &mut Transcript, boss: &str, worker: &str) {
    transcript
        .post(
            "",
            "/register",
            &json!({"agent_id": "w-2", "skills": [{"skill_name": "s", "cost_per_call": -1}]}),
        )
        .await
        .expect_status(400);
    for path in [
        "/skills",
        "/skills?limit=0",
        "/skills/analyze_text",
        "/skills/absent",
        "/skills/%00",
        "/discover?min_hirers=1",
        "/discover?min_earned=x",
        "/discover?skill=analyze_text",
        "/discover?skill=analyze_text&max_cost=0.01",
        "/discover?skill=x&max_cost=x",
        "/reputation/worker-1",
        "/reputation/absent",
        "/reputation/%00",
        "/economy",
        "/economy?x=%zz",
    ] {
        for key in ["", boss] {
            transcript.get(key, path).await;
        }
    }
    let adding =
        json!({"description": "Adds", "cost_per_call": 0.10, "input_schema": {"a": "number"}});
    for (key, name, body) in [
        (worker, "adding", adding.clone()),
        (worker, "adding", adding.clone()),
        (worker, "adding", json!({"cost_per_call": -1})),
        (worker, "%00", adding.clone()),
        ("", "adding", adding.clone()),
        (OPERATOR_KEY, "adding", adding),
    ] {
        transcript.put(key, &format!("/skills/{name}"), &body).await;
    }
    transcript.get("", "/skills").await.expect_status(200);
    for (key, name) in [
        (worker, "adding"),
        (worker, "adding"),
        (worker, "%00"),
        ("", "adding"),
    ] {
        transcript.delete(key, &format!("/skills/{name}")).await;
    }
    for (key, body) in [
        (worker, json!({"agent_id": "worker-1", "load": 0.5})),
        (worker, json!({"agent_id": "boss-1"})),
        (worker, json!({"agent_id": 5})),
        ("", json!({})),
    ] {
        transcript.post(key, "/heartbeat", &body).await;
    }
}

fn job(id: &str) -> Value {
    json!({"job_id": id, "skill_name": "analyze_text", "input_data": {"text": "Revenue"}, "budget": 0.15})
}

async fn jobs(transcript: &mut Transcript, boss: &str, worker: &str, place: &mut Webhook) {
    let mut inbox = transcript
        .open_stream(raw_request("GET", "/agent/inbox").key(worker))
        .await;
    let mut hers = transcript
        .open_stream(raw_request("GET", "/agent/inbox").key(boss))
        .await;
    let mut first = job("job-1");
    first["callback_url"] = json!(place.url());
    for body in [&first, &first, &job("job-1")] {
        transcript.post(boss, "/jobs", body).await;
    }
    transcript.record_events(&mut inbox, 1).await;
    request_refused_jobs(transcript, boss).await;
    read_jobs(transcript, boss, worker).await;
    transcript
        .post(worker, "/jobs/job-1/result", &success_result(0.16))
        .await
        .expect_status(400);
    transcript
        .post(boss, "/jobs/job-1/result", &success_result(0.10))
        .await;
    transcript
        .post(worker, "/jobs/none/result", &success_result(0.10))
        .await
        .expect_status(404);
    transcript
        .post(worker, "/jobs/%00/result", &success_result(0.10))
        .await;
    transcript
        .post(worker, "/jobs/job-1/result", &success_result(0.10))
        .await
        .expect_status(200);
    transcript.record_events(&mut hers, 1).await;
    let heard = place.next_request().await;
    transcript.add_entry(
        "heard at the boss's",
        &format!("{}\n\n{}", heard.head, heard.text),
    );
    transcript
        .post(worker, "/jobs/job-1/result", &success_result(0.05))
        .await
        .expect_status(409);
    transcript.get(boss, "/jobs/job-1").await.expect_status(200);
}

async fn request_refused_jobs(transcript: &mut Transcript, boss: &str) {
    for (field, value) in [
        ("skill_name", json!("none")),
        ("budget", json!(0.01)),
        ("budget", json!("much")),
        ("input_data", json!({"text": 5})),
        ("job_id", json!("a\u{0}b")),
        ("agent_id", json!("absent")),
        ("callback_url", json!("ftp://x/")),
        ("budget", json!(100_000)),
    ] {
        let mut bad = job("job-x");
        bad[field] = value;
        transcript.post(boss, "/jobs", &bad).await;
    }
    transcript
        .post("", "/jobs", &job("job-x"))
        .await
        .expect_status(401);
    transcript.post(OPERATOR_KEY, "/jobs", &job("job-x")).await;
}

async fn read_jobs(transcript: &mut Transcript, boss: &str, worker: &str) {
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
            transcript.get(key, path).await;
        }
    }
}

async fn endings(transcript: &mut Transcript, boss: &str, worker: &str) {
    for id in ["job-2", "job-3", "job-4"] {
        transcript
            .post(boss, "/jobs", &job(id))
            .await
            .expect_status(202);
    }
    transcript
        .post(worker, "/jobs/job-2/cancel", &json!({}))
        .await;
    transcript
        .post("", "/jobs/job-2/cancel", &json!({}))
        .await
        .expect_status(401);
    for _ in 0..2 {
        transcript
            .post(boss, "/jobs/job-2/cancel", &json!({}))
            .await;
    }
    transcript.post(boss, "/jobs/%00/cancel", &json!({})).await;
    let failure = json!({"status": "FAILURE", "output_data": null, "error_message": "no figures"});
    transcript
        .post(worker, "/jobs/job-3/result", &failure)
        .await
        .expect_status(200);
    transcript.hub.advance(Duration::from_secs(601));
    transcript.hub.maintain().await;
    transcript
        .until(boss, "/jobs/job-4", |body| body["status"] == "FAILURE")
        .await;
    for query in ["", "?status=FAILURE", "?limit=2", "?limit=1&before=job-3"] {
        transcript
            .get(boss, &format!("/jobs{query}"))
            .await
            .expect_status(200);
    }
    transcript
        .get("", "/reputation/worker-1")
        .await
        .expect_status(200);
}

async fn board(transcript: &mut Transcript, boss: &str, worker: &str) {
    for (id, approve_within_ms) in [
        ("job-5", json!(60_000)),
        ("job-6", json!(60_000)),
        ("job-7", Value::Null),
    ] {
        let mut open = job(id);
        open["board"] = json!(true);
        open["approve_within_ms"] = approve_within_ms;
        transcript
            .post(boss, "/jobs", &open)
            .await
            .expect_status(202);
    }
    for key in [worker, "", OPERATOR_KEY] {
        for path in [
            "/board",
            "/board?skill=analyze_text&limit=1",
            "/board?skill=%00",
            "/board?after=job-5",
            "/board?after=none",
            "/board?limit=0",
            "/jobs/job-5",
        ] {
            transcript.get(key, path).await;
        }
        for path in ["/jobs/job-5/claim", "/jobs/none/claim", "/jobs/%00/claim"] {
            transcript.post(key, path, &json!({})).await;
        }
    }
    talk(transcript, boss, worker).await;
    judge(transcript, boss, worker).await;
}

async fn talk(transcript: &mut Transcript, boss: &str, worker: &str) {
    for id in ["job-6", "job-7"] {
        transcript
            .post(worker, &format!("/jobs/{id}/claim"), &json!({}))
            .await
            .expect_status(200);
    }
    for report in [
        json!({"status": "PENDING", "progress": "half"}),
        json!({"status": "PENDING", "question": "Which?"}),
        json!({"status": "PENDING", "question": "Which?"}),
    ] {
        transcript.post(worker, "/jobs/job-7/result", &report).await;
    }
    for key in [worker, "", boss, boss] {
        for (path, body) in [
            ("/jobs/job-7/answer", json!({"answer": "This."})),
            ("/jobs/job-7/answer", json!({})),
            ("/jobs/%00/answer", json!({"answer": "This."})),
        ] {
            transcript.post(key, path, &body).await;
        }
    }
}

async fn judge(transcript: &mut Transcript, boss: &str, worker: &str) {
    for id in ["job-5", "job-6", "job-7"] {
        let path = format!("/jobs/{id}/result");
        transcript
            .post(worker, &path, &success_result(0.10))
            .await
            .expect_status(200);
    }
    transcript
        .post("", "/jobs/job-5/result/wrong", &success_result(0.10))
        .await
        .expect_status(404);
    for key in [worker, "", boss, boss] {
        transcript
            .post(key, "/jobs/job-5/approve", &json!({}))
            .await;
        transcript
            .post(key, "/jobs/job-6/reject", &json!({"reason": "no"}))
            .await;
        transcript
            .post(key, "/jobs/job-6/reject", &json!({"reason": 1}))
            .await;
    }
    transcript.get(boss, "/jobs/job-7").await.expect_status(200);
}

/// A worker with an endpoint reports later, with the secret of the `callback_url` in place of a key (R-86).
async fn report_by_callback(transcript: &mut Transcript, boss: &str) {
    let mut endpoint = Webhook::replying(Reply::json(202, r#"{"status":"PENDING"}"#)).await;
    let address = format!("127.0.0.1:{}", endpoint.port());
    transcript.placeholders.assign(&address, "workers-place");
    let worker = json!({"agent_id": "worker-2", "owner_id": "owner-of-worker-2", "api_endpoint": format!("http://{address}"),
        "skills": [{"skill_name": "count_words", "cost_per_call": 0.10}]});
    transcript
        .post("", "/register", &worker)
        .await
        .expect_status(201);
    let mut counting = job("job-8");
    counting["skill_name"] = json!("count_words");
    transcript
        .post(boss, "/jobs", &counting)
        .await
        .expect_status(202);
    let heard = endpoint.next_request().await;
    let callback = heard.json()["callback_url"].as_str().unwrap().to_owned();
    let (_, secret) = callback.rsplit_once('/').unwrap();
    transcript.placeholders.assign(secret, "secret-of-job-8");
    transcript.add_entry(
        "heard at the worker's",
        &format!("{}\n\n{}", heard.head, heard.text),
    );
    let path = format!("/jobs/job-8/result/{secret}");
    transcript
        .post(
            "",
            &path,
            &json!({"status": "SUCCESS", "output_data": {}, "execution_cost": 9}),
        )
        .await
        .expect_status(400);
    transcript
        .post("", &path, &success_result(0.10))
        .await
        .expect_status(200);
    transcript.get(boss, "/jobs/job-8").await.expect_status(200);
}

async fn credits(transcript: &mut Transcript, boss: &str, worker: &str) {
    let transfer = json!({"transfer_id": "t-1", "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-1", "amount": 2.5, "job_id": "uuid"});
    for key in [boss, worker, "", OPERATOR_KEY] {
        transcript.post(key, "/transfer", &transfer).await;
        transcript
            .post(key, "/transfer", &json!({"amount": -1}))
            .await;
        for path in [
            "/accounts/owner-of-boss-1",
            "/accounts/absent",
            "/accounts/%00",
            "/audit",
            "/audit?limit=2",
            "/audit?owner_id=owner-of-worker-1",
            "/audit?job_id=job-1",
            "/audit?limit=0",
            "/audit?job_id=%00",
            "/audit?before=3",
        ] {
            transcript.get(key, path).await;
        }
        for (owner, body) in [
            (
                "owner-of-boss-1",
                json!({"amount": 5.25, "reason": "invoice 7"}),
            ),
            ("owner-of-boss-1", json!({"amount": "much"})),
            ("absent", json!({"amount": 1})),
            ("%00", json!({"amount": 1})),
        ] {
            transcript
                .post(key, &format!("/accounts/{owner}/credit"), &body)
                .await;
        }
    }
    transcript.get("", "/economy").await.expect_status(200);
}
