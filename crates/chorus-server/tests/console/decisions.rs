//! Decisions: an agent asks, a person answers on the page, and the agent receives the answer.

use crate::stage::{Stage, moment, said};
use crate::support::actors::{Agent, Answer, Stream};
use chorus_hub::Clock;
use chorus_wire::time::UnixMicros;
use serde_json::{Value, json};

/// Asks, and returns the id of the question and the stream on which the answer comes.
async fn asks(agent: &Agent, moment: &Value) -> (String, Stream) {
    let mut stream = agent
        .stream("/handles/~alice/stream?instrument=cc-tests&session=s2&filter=kind:agent_response")
        .await;
    stream.next("connected").await;
    stream.next("open-items").await;
    let frame = said(agent, "agent_binding_moment", moment);
    let id = frame["frame_id"].as_str().unwrap().to_owned();
    agent.submit("~alice", &frame).await.recipient_count(&id);
    (id, stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_on_an_option_answers_the_agent_that_asked() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    let (id, mut stream) = asks(&alice, &moment()).await;
    // Every view of the page shows that an agent waits for an answer.
    stage
        .browser
        .eventually("document.querySelector('nav .badge:not([hidden])')?.textContent === '1'")
        .await;
    stage.view("sessions").await;
    for text in [
        "The migration of the sessions table is ready.",
        "It takes a lock",
        "When shall the migration run?",
    ] {
        stage.browser.shows(text).await;
    }
    let advised =
        "return document.querySelector('.option.advised').textContent.includes(\"At two o'clock\")";
    assert_eq!(stage.browser.run(advised).await, true);
    stage
        .browser
        .click(&format!("[data-moment='{id}'] [data-option='1']"))
        .await;
    let answer = stream.next("agent_response").await.data;
    let payload = &answer["payload"];
    assert_eq!(
        (&payload["query_id"], &payload["responded_to_frame_id"]),
        (&json!(id), &json!(id))
    );
    assert_eq!(payload["response_text"], "2: At two o'clock");
    assert_eq!(
        (&answer["sender_handle"], &answer["acted_by"]),
        (&json!("~alice"), &json!("~alice"))
    );
    stage.browser.shows("Answered:").await;
    stage
        .browser
        .eventually("document.querySelector('nav .badge').hidden")
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_ones_own_words_or_a_question_first_goes_through_its_hatch() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    for (hatch, text, heard) in [
        ("text", "On Sunday", "On Sunday"),
        ("dialogue", "Who is on call?", "dialogue: Who is on call?"),
    ] {
        let (id, mut stream) = asks(&alice, &moment()).await;
        stage
            .browser
            .write(
                &format!("[data-moment='{id}'] [data-hatch={hatch}] input"),
                text,
            )
            .await;
        stage
            .browser
            .click(&format!("[data-moment='{id}'] [data-hatch={hatch}] button"))
            .await;
        let answer = stream.next("agent_response").await.data;
        assert_eq!(
            (
                &answer["payload"]["query_id"],
                &answer["payload"]["response_text"]
            ),
            (&json!(id), &json!(heard))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_hatch_is_not_offered_and_an_answer_from_elsewhere_closes_the_card() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    let mut moment = moment();
    moment["question"]["hatches"] = json!({"free_text": false, "dialogue": true});
    let (id, _stream) = asks(&alice, &moment).await;
    stage
        .browser
        .eventually(&format!(
            "document.querySelector('[data-moment=\"{id}\"] [data-hatch=dialogue]')"
        ))
        .await;
    assert_eq!(
        stage
            .browser
            .run("return document.querySelectorAll('[data-hatch=text]').length")
            .await,
        0
    );
    let other = json!({"query_id": id, "response_text": "1: Now", "responder_session_id": "s9"});
    let frame = said(&alice, "agent_response", &other);
    alice
        .submit("~alice", &frame)
        .await
        .recipient_count(frame["frame_id"].as_str().unwrap());
    stage.browser.shows("Answered: 1: Now").await;
    assert_eq!(
        stage
            .browser
            .run("return document.querySelectorAll('.option').length")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_are_shown_by_resource_with_their_time_left_and_frames_by_kind() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let lease = "853b9f5a-fa57-4103-9d42-eb724446455a";
    let claim = json!({"resource": "src/auth.rs", "lease_id": lease, "ttl_ms": 600_000, "intent": "moving the check"});
    // Said before the page is opened: what the hub still keeps is part of the picture.
    for (kind, payload) in [
        ("agent_lock_request", claim),
        ("agent_advisory", json!({"advisory_text": "reading"})),
    ] {
        let frame = said(&alice, kind, &payload);
        alice
            .submit("~alice", &frame)
            .await
            .recipient_count(frame["frame_id"].as_str().unwrap());
    }
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    stage.browser.shows("moving the check").await;
    stage
        .browser
        .eventually("/^9 min/.test(document.querySelector('.locks .left')?.textContent)")
        .await;
    stage
        .browser
        .eventually("document.querySelectorAll('.frame-list .row:not([hidden])').length === 2")
        .await;
    stage
        .browser
        .click(".chips button[data-key=agent_advisory]")
        .await;
    stage
        .browser
        .eventually("document.querySelectorAll('.frame-list .row:not([hidden])').length === 1")
        .await;
    let frame = said(&alice, "agent_lock_release", &json!({ "lease_id": lease }));
    alice
        .submit("~alice", &frame)
        .await
        .recipient_count(frame["frame_id"].as_str().unwrap());
    stage.browser.shows("Nothing is claimed.").await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_double_click_answers_one_decision_and_its_card_stays() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    let (first, mut stream) = asks(&alice, &moment()).await;
    let (second, _) = asks(&alice, &moment()).await;
    stage
        .browser
        .eventually("document.querySelectorAll('.option').length === 4")
        .await;
    // Two clicks at one place of the screen: on the option, and on what is there next.
    stage
        .browser
        .run(
            "const box = document.querySelector('.option').getBoundingClientRect(); \
             const click = () => document.elementFromPoint(box.x + 40, box.y + 10).closest('button')?.click(); \
             click(); click(); \
             document.querySelectorAll('.option').forEach((option) => option.click());",
        )
        .await;
    let answer = stream.next("agent_response").await.data;
    assert_eq!(answer["payload"]["query_id"], json!(first));
    let outcome = format!(
        "document.querySelector('[data-moment=\"{first}\"] .answered')?.textContent.includes('1: Now')"
    );
    stage.browser.eventually(&outcome).await;
    let order =
        "return [...document.querySelectorAll('[data-moment]')].map((card) => card.dataset.moment)";
    assert_eq!(stage.browser.run(order).await, json!([first, second]));
    let open = alice.get("/handles/~alice/open").await.json();
    assert_eq!(open["items"][0]["frame_id"], json!(second), "{open}");
    assert_eq!(open["items"].as_array().unwrap().len(), 1);
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_choice_that_is_undone_is_never_sent() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    // On the first view: a decision is what needs the person most.
    let (id, mut stream) = asks(&alice, &moment()).await;
    let card = format!("[data-moment='{id}']");
    let option = format!("document.querySelector(\"{card} [data-option='0']\")");
    stage.browser.eventually(&option).await;
    // In one script: a choice is sent after three seconds, and several calls may take longer on a busy machine.
    let choose_and_undo = format!(
        "const done = arguments[0]; {option}.click(); \
         const undo = () => {{ \
           const button = document.querySelector(\"{card} [data-do=undo]\"); \
           if (!button) return requestAnimationFrame(undo); \
           const shown = document.querySelector(\"{card}\").innerText; button.click(); return done(shown); }}; \
         undo();"
    );
    let shown = stage.browser.run_async(&choose_and_undo).await;
    assert!(
        shown.as_str().unwrap().contains("You chose: 1: Now"),
        "{shown}"
    );
    stage
        .browser
        .eventually(&format!(
            "document.querySelectorAll(\"{card} .option\").length === 2"
        ))
        .await;
    // A second after the first choice, another one counts: what is sent is the second.
    let chosen = format!(
        "(document.querySelector(\"{card} [data-option='1']\")?.click(), document.querySelector('.held'))"
    );
    stage.browser.eventually(&chosen).await;
    let answer = stream.next("agent_response").await.data;
    assert_eq!(answer["payload"]["response_text"], "2: At two o'clock");
    stage.browser.shows("Answered: 2: At two o'clock").await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_that_expires_leaves_the_page_by_itself() {
    //
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    let mut frame = said(&alice, "agent_binding_moment", &moment());
    frame["ttl_ms"] = json!(6_000);
    alice.submit("~alice", &frame).await;
    stage.browser.shows("When shall the migration run?").await;
    stage
        .browser
        .eventually("document.title === '(1) Chorus'")
        .await;
    // Nothing else happens: no frame comes, and nobody touches the page.
    stage
        .browser
        .eventually("!document.querySelector('[data-moment]')")
        .await;
    stage.browser.shows("No decision is waiting for you.").await;
    stage
        .browser
        .eventually(
            "document.querySelector('nav a[data-view=sessions] .badge').hidden && document.title === 'Chorus'",
        )
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_without_ttl_ms_is_news_for_an_hour() {
    // FRM-11, R-83
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let now = Clock::system().now();
    let minutes_ago = |minutes: i64| json!(UnixMicros(now.0 - minutes * 60_000_000));
    let handover =
        json!({"previous_session_id": "s1", "handover_body": "self-dated, two hours old"});
    for (text, kind, age, ttl_ms) in [
        ("of half an hour ago", "agent_advisory", 30, None),
        ("of two hours ago", "agent_advisory", 120, None),
        (
            "valid for three hours",
            "agent_advisory",
            120,
            Some(3 * 3_600_000),
        ),
        ("valid for a minute", "agent_advisory", 30, Some(60_000)),
        ("", "agent_handover", 120, None),
    ] {
        let advisory = json!({ "advisory_text": text });
        let payload = if text.is_empty() {
            &handover
        } else {
            &advisory
        };
        let mut frame = said(&alice, kind, payload);
        frame["created_at"] = minutes_ago(age);
        if let Some(ttl_ms) = ttl_ms {
            frame["ttl_ms"] = json!(ttl_ms);
        }
        let id = frame["frame_id"].as_str().unwrap();
        alice.submit("~alice", &frame).await.recipient_count(id);
    }
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    stage.browser.shows("self-dated, two hours old").await;
    let texts = stage
        .browser
        .run(
            "return [...document.querySelectorAll('.frame-list .row:not([hidden]) > :last-child')].map((one) => one.textContent)",
        )
        .await;
    assert_eq!(
        texts,
        json!([
            "self-dated, two hours old",
            "valid for three hours",
            "of half an hour ago"
        ])
    );
}

// after a restart the hub has no frame in memory, and the page reads what is open from the store
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_is_on_the_page_after_the_hub_restarts() {
    let Some(mut stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let lease = "853b9f5a-fa57-4103-9d42-eb724446455a";
    let claim = json!({"resource": "src/auth.rs", "lease_id": lease, "ttl_ms": 600_000, "intent": "moving the check"});
    let frame = said(&alice, "agent_lock_request", &claim);
    alice.submit("~alice", &frame).await;
    let note = json!({"previous_session_id": "s1", "handover_body": "The cart still fails."});
    let handover = said(&alice, "agent_handover", &note);
    alice.submit("~alice", &handover).await;
    let (id, _) = asks(&alice, &moment()).await;
    let option = format!("document.querySelector(\"[data-moment='{id}'] [data-option='1']\")");
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    stage.browser.shows("moving the check").await;
    stage.browser.eventually(&option).await;
    stage.stop_hub().await;
    stage.browser.shows("Reconnecting…").await;
    stage.hub.restart().await;
    stage.live().await;
    // The page that stayed open has them still, and so has one that is loaded now.
    for is_loaded_again in [false, true] {
        if is_loaded_again {
            stage.goto("/console").await;
            stage.live().await;
            stage.view("sessions").await;
        }
        stage.browser.shows("moving the check").await;
        stage.browser.shows("The cart still fails.").await;
        stage.browser.eventually(&option).await;
        stage
            .browser
            .eventually("document.querySelector('nav .badge:not([hidden])')?.textContent === '1'")
            .await;
    }
    let mut answers = alice
        .stream("/handles/~alice/stream?instrument=cc-tests&session=s2&filter=kind:agent_response")
        .await;
    answers.next("connected").await;
    answers.next("open-items").await;
    stage
        .browser
        .click(&format!("[data-moment='{id}'] [data-option='1']"))
        .await;
    let answer = answers.next("agent_response").await.data;
    assert_eq!(answer["payload"]["query_id"], json!(id));
    let open = alice.get("/handles/~alice/open").await.json();
    assert_eq!(open["items"].as_array().unwrap().len(), 2, "{open}");
    let handover = handover["frame_id"].as_str().unwrap();
    let take = format!("/handles/~alice/open/{handover}/take");
    let taken = alice
        .request("POST", &take)
        .header("x-chorus-instrument", "cc-tests")
        .header("x-chorus-session", "s9");
    assert_eq!(Answer::of(taken).await.status, 200);
    stage.browser.shows("Nothing is handed over.").await;
    stage.browser.shows("moving the check").await;
}
