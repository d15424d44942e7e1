//! The activity of an agent: what happened to it, in words, newest first, with a way to what it is about.

use crate::stage::{Stage, offer_skill};
use crate::support::actors::Agent;
use futures_util::{StreamExt, stream};
use serde_json::json;

const KINDS: &str = "[...document.querySelectorAll('.rows .row:not([hidden])')] \
     .sort((one, other) => one.index - other.index).map((row) => row.querySelector('.kind').textContent)";

/// The text of the row of this kind, without the characters that isolate names.
fn row_says(kind: &str, text: &str) -> String {
    format!(
        "[...document.querySelectorAll('.rows .row:not([hidden])')].some((row) => \
           row.querySelector('.kind').textContent === {} && \
           row.innerText.replace(/[\\u2066-\\u2069]/g, '').includes({}))",
        json!(kind),
        json!(text)
    )
}

async fn click_row(stage: &Stage, kind: &str, text: &str) {
    stage.browser.eventually(&row_says(kind, text)).await;
    let find = format!(
        "[...document.querySelectorAll('.rows .row:not([hidden])')].find((row) => \
           row.querySelector('.kind').textContent === {} && \
           row.innerText.replace(/[\\u2066-\\u2069]/g, '').includes({})).click()",
        json!(kind),
        json!(text)
    );
    stage.browser.run(&find).await;
}

/// A job that `bob` does for `alice`; returns its id.
async fn do_job(alice: &Agent, bob: &Agent) -> String {
    offer_skill(bob, "translate", &json!({"cost_per_call": 0.10})).await;
    let request = json!({"skill_name": "translate", "budget": 0.5, "input_data": {"text": "x"}});
    let job = alice.post("/jobs", &request).await.json();
    let id = job["job_id"].as_str().unwrap().to_owned();
    let done = json!({"status": "SUCCESS", "output_data": {"text": "y"}, "execution_time_ms": 8});
    let answer = bob.post(&format!("/jobs/{id}/result"), &done).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_activity_tells_what_happened_to_it_and_leads_there() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let card = json!({"endpoint": "http://127.0.0.1:9/receive"});
    stage.hub.agent_with("dave@chorus", &card).await;
    let sent = alice
        .send_expecting("bob", "Shall **we** meet?", "queued")
        .await;
    alice.send_expecting("dave", "lost", "failed").await;
    bob.send_expecting("alice", "On Thursday", "queued").await;
    let job = do_job(&alice, &bob).await;
    stage.sign_in(&alice.key).await;
    stage.view("activity").await;
    for (kind, text) in [
        ("Sent", "to bob@chorus: Shall we meet?"),
        ("Sent", "queued"),
        ("Not delivered", "to dave@chorus: lost"),
        ("Received", "from bob@chorus: On Thursday"),
        ("Job", "you asked bob@chorus for translate"),
        ("Job", "translate by bob@chorus"),
        ("Credits", "−0.10"),
    ] {
        stage.browser.eventually(&row_says(kind, text)).await;
    }
    // The newest is first.
    let kinds = stage.browser.run(&format!("return {KINDS}")).await;
    let kinds: Vec<&str> = kinds
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one.as_str())
        .collect();
    let first_job = kinds.iter().position(|kind| *kind == "Job").unwrap();
    let received = kinds.iter().position(|kind| *kind == "Received").unwrap();
    let failed = kinds
        .iter()
        .position(|kind| *kind == "Not delivered")
        .unwrap();
    assert!(first_job < received && received < failed, "{kinds:?}");
    // What happens now comes by itself.
    let response = format!(
        "/agent/messages/{}/response",
        sent["trace_id"].as_str().unwrap()
    );
    bob.post(&response, &json!({"status": "ok"}))
        .await
        .data(200);
    stage
        .browser
        .eventually(&row_says(
            "Receipt",
            "bob@chorus acknowledged your message: Shall we meet?",
        ))
        .await;
    stage
        .browser
        .eventually(&row_says("Sent", "acknowledged"))
        .await;
    for (kind, text, address) in [
        ("Sent", "Shall we", "#/conversations/bob%40chorus/"),
        ("Job", "translate by", &format!("#/market/{job}")),
        ("Credits", "−0.10", &format!("#/market/{job}")),
        ("Receipt", "acknowledged", "#/conversations/bob%40chorus/"),
    ] {
        stage.view("activity").await;
        click_row(&stage, kind, text).await;
        let is_there = format!("location.hash.startsWith({})", json!(address));
        stage.browser.eventually(&is_there).await;
    }
    stage.is_clean().await;
}

/// More than two pages of the hub's lists.
const MESSAGES: usize = 260;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_activity_reads_on_to_its_beginning() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    do_job(&alice, &bob).await;
    let sends = (0..MESSAGES).map(|number| {
        let alice = &alice;
        async move { alice.send("bob", &format!("message {number}")).await.status }
    });
    let sent: Vec<u16> = stream::iter(sends).buffer_unordered(16).collect().await;
    assert!(sent.iter().all(|status| *status == 202));
    stage.sign_in(&alice.key).await;
    stage.view("activity").await;
    stage.browser.eventually(&row_says("Sent", "message")).await;
    // The job is older than the messages: it comes after them, when they are read.
    let scroll = format!(
        "(() => {{ const rows = document.querySelector('.rows'); rows.scrollTop = rows.scrollHeight; \
           return {}; }})()",
        row_says("Job", "you asked bob@chorus for translate")
    );
    stage.browser.eventually(&scroll).await;
    // Those that search find a message among them.
    stage
        .browser
        .write("main input[type=search]", "message 17")
        .await;
    stage
        .browser
        .eventually(
            "/^1[0-9]? of [23]\\d\\d$/.test(document.querySelector('.bar .small').textContent)",
        )
        .await;
    stage.is_clean().await;
}
