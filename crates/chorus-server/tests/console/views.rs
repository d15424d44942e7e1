//! Single views: a thread with its cultures, a job with its credits, a directory with search.

use crate::stage::{Stage, offer_skill};
use crate::support::actors::channel::create_channel;
use crate::support::hub::OPERATOR_KEY;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_shows_culture_context_and_turn_and_keeps_conversations_apart() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    for (thread, turn, text) in [
        ("review", 1, "Passt Donnerstag?"),
        ("invoice", 1, "Zeile 14 fehlt."),
        ("review", 2, "Um zehn?"),
    ] {
        let mut message = bob.message("alice", text);
        let more = json!({"conversation_id": thread, "turn_number": turn, "sender_culture": "de",
            "cultural_context": "Direct wording is normal here."});
        message["envelope"]
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        bob.post("/messages", &message).await.data(202);
    }
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.picks a').length === 2")
        .await;
    stage.view("conversations/bob%40chorus/review").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.bubble').length === 2")
        .await;
    for text in [
        "Passt Donnerstag?",
        "Direct wording is normal here.",
        "turn 2",
    ] {
        stage.browser.shows(text).await;
    }
    assert_eq!(
        stage
            .browser
            .run("return document.querySelector('.bubble .said').lang")
            .await,
        "de"
    );
    assert_eq!(
        stage
            .browser
            .run("return document.querySelector('.bubble .chip').title")
            .await,
        "German"
    );
    // The answer is the next turn of the same conversation.
    stage
        .browser
        .write(".composer textarea", "Ten is fine.")
        .await;
    stage.browser.click(".composer button").await;
    stage
        .browser
        .eventually("document.querySelector('.bubble.mine')")
        .await;
    let last = bob.history("").await.pop().unwrap();
    let envelope = &last["envelope"];
    assert_eq!(
        (&envelope["conversation_id"], &envelope["turn_number"]),
        (&json!("review"), &json!(3))
    );
    stage.is_clean().await;
}

/// the answer to the first try is lost on its way back, and what is pressed again is the same word, in a room as in a letter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_again_after_a_lost_answer_is_said_once() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "weather").await;
    let mut hello = bob.message("alice", "Hello?");
    hello["envelope"]["conversation_id"] = json!("review");
    bob.post("/messages", &hello).await.data(202);
    stage.sign_in(&alice.key).await;
    // Only an answer to a sent message is lost: meanwhile a stream posts for its session token, and what is in sight is marked as shown.
    let lose = "const ask = window.fetch; window.fetch = async (...of) => { const answer = await ask(...of); \
         if (of[1]?.method !== 'POST' || !String(of[0]).endsWith('/messages') || window.lost) return answer; \
         window.lost = true; throw new TypeError('gone'); };";
    for view in [
        "conversations/bob%40chorus/review".to_owned(),
        room.trim_start_matches('/').to_owned(),
    ] {
        stage.view(&view).await;
        stage
            .browser
            .eventually("document.querySelector('.composer textarea')")
            .await;
        stage
            .browser
            .run(&format!("window.lost = false; {lose}"))
            .await;
        stage
            .browser
            .write(".composer textarea", "Only once.")
            .await;
        stage.browser.click(".composer button").await;
        stage
            .browser
            .eventually("document.querySelector('.composer .wrong').textContent")
            .await;
        stage.browser.click(".composer button").await;
        stage
            .browser
            .eventually("!document.querySelector('.composer textarea').value")
            .await;
    }
    let letters = bob.history("").await;
    assert_eq!(
        letters
            .iter()
            .filter(|row| row["envelope"]["original_text"] == "Only once.")
            .count(),
        1,
        "{letters:?}"
    );
    let said = alice.get(&format!("{room}/messages")).await.text;
    assert_eq!(said.matches("Only once.").count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_and_its_money_are_followed_to_the_end() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    offer_skill(&bob, "translate", &json!({"cost_per_call": 0.10})).await;
    stage.sign_in(&alice.key).await;
    stage.view("market").await;
    stage.browser.shows("from 0.10").await;
    let job = alice
        .post("/jobs", &json!({"skill_name": "translate", "budget": 0.25, "input_data": {"text": "guten Tag"}}))
        .await;
    let job = job.json()["job_id"].as_str().unwrap().to_owned();
    let state =
        |word: &str| format!("document.querySelector('.picks .state')?.textContent === '{word}'");
    stage.browser.eventually(&state("under way")).await;
    let balance =
        |text: &str| format!("document.querySelector('.tile dd')?.textContent === '{text}'");
    stage.browser.eventually(&balance("99.75")).await;
    let result =
        json!({"status": "SUCCESS", "output_data": {"text": "good day"}, "execution_time_ms": 840});
    assert_eq!(
        bob.post(&format!("/jobs/{job}/result"), &result)
            .await
            .status,
        200
    );
    stage.browser.eventually(&state("done")).await;
    stage.browser.eventually(&balance("99.90")).await;
    stage.browser.click(".picks a").await;
    for text in [
        "alice@chorus asked for translate",
        "0.25 held",
        "handed to bob@chorus",
        "0.10 paid",
        "0.15 given back",
        "good day",
    ] {
        stage.browser.shows(text).await;
    }
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ones_own_credits_are_one_row_and_those_of_the_hub_another() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let tiles =
        |whose: &str| format!("[...document.querySelectorAll('[data-totals={whose}] .tile')]");
    let rows = |whose: &str| {
        let tops = "map((tile) => tile.getBoundingClientRect().top)";
        format!("[{0}.length, new Set({0}.{tops}).size]", tiles(whose))
    };
    let labels = "[...document.querySelectorAll('h2')].filter((one) => one.textContent === 'The whole hub').length";
    let layout = format!("return [{}, {}, {labels}]", rows("own"), rows("hub"));
    for (key, expected) in [
        (alice.key.as_str(), json!([[4, 1], [3, 1], 1])),
        (OPERATOR_KEY, json!([[0, 0], [3, 1], 0])),
    ] {
        stage.sign_in(key).await;
        stage.view("market").await;
        stage
            .browser
            .eventually("document.querySelector('[data-totals=hub]')")
            .await;
        assert_eq!(stage.browser.run(&layout).await, expected);
        // What is one's own comes first, and the hub after the jobs.
        let follows = "const [own, jobs, hub] = ['[data-totals=own]', '.grid.two', '[data-totals=hub]'].map((css) => \
             document.querySelector(css)?.getBoundingClientRect().top); \
             return own === undefined ? hub < jobs : own < jobs && jobs < hub";
        assert_eq!(stage.browser.run(follows).await, true);
        stage.is_clean().await;
        stage.browser.click("[data-do=leave]").await;
        stage
            .browser
            .eventually("document.querySelector('#key')")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_agents_page_has_its_card_and_what_was_said_with_it() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let card = json!({"card_version": "0.3", "user_culture": "ja", "supported_languages": ["ja", "en"], "about": "Plans trips."});
    let yuki = stage
        .hub
        .agent_with("yuki@chorus", &json!({ "agent_card": card }))
        .await;
    yuki.send_expecting("alice", "konnichiwa", "queued").await;
    //
    let mut waker = yuki.stream("/agent/inbox?reach=wakes").await;
    waker.next("connected").await;
    stage.sign_in(&alice.key).await;
    // On a phone the list has the page to itself.
    stage.set_screen(390, 844).await;
    stage.view("agents").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 2")
        .await;
    let is_alone = "return document.querySelector('.person') === null";
    assert_eq!(stage.browser.run(is_alone).await, true);
    // Beside it the first other agent opens by itself.
    stage.view("overview").await;
    stage.set_screen(1280, 800).await;
    stage.view("agents").await;
    stage
        .browser
        .eventually("document.querySelector('.person h2')?.textContent === 'yuki@chorus'")
        .await;
    stage.browser.write("main input[type=search]", "ja").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 1")
        .await;
    stage.browser.click(".rows .row").await;
    for text in [
        "~yuki",
        "Japanese",
        "Plans trips.",
        "konnichiwa",
        "a message starts a turn of its session",
        "/invite/yuki%40chorus",
    ] {
        stage.browser.shows(text).await;
    }
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_under_another_host_is_marked_in_the_list_and_on_its_page() {
    //
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.hub.agent("bob").await;
    stage
        .hub
        .agent_with("ceo@elsewhere.example", &json!({}))
        .await;
    stage.sign_in(&alice.key).await;
    stage.view("agents").await;
    stage.browser.shows("ceo@elsewhere.example").await;
    stage.browser.shows("bob@chorus").await;
    let marked = "return [...document.querySelectorAll('.rows .row')]
        .filter((row) => row.querySelector('.chip.bad')?.textContent === 'unverified')
        .map((row) => row.textContent).join()";
    let marked = stage.browser.run(marked).await.to_string();
    assert!(marked.contains("ceo@elsewhere.example"), "{marked}");
    assert!(!marked.contains("bob@chorus"), "{marked}");
    stage
        .browser
        .write("main input[type=search]", "elsewhere")
        .await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 1")
        .await;
    stage.browser.click(".rows .row:not([hidden])").await;
    stage
        .browser
        .eventually("document.querySelector('.person h2 .chip.bad')?.textContent === 'unverified'")
        .await;
    stage.is_clean().await;
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_made_shown_once_and_ended() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.live().await;
    stage.browser.click("a.who").await;
    let none = "There is only the key of the registration.";
    stage.browser.shows(none).await;
    stage.browser.write("[name=label]", "build server").await;
    stage.browser.click("[name=scope][value=read]").await;
    stage.browser.click("form[data-form=key] button").await;
    stage
        .browser
        .eventually("document.querySelector('[data-new-key] code')?.textContent.startsWith('ca_')")
        .await;
    stage
        .browser
        .eventually("document.querySelectorAll('[data-list=keys] article').length === 1")
        .await;
    let shown = "return document.querySelector('[data-new-key] code').textContent";
    let key = stage.browser.run(shown).await;
    let key = alice.with_key(key.as_str().unwrap());
    key.get("/agent/messages").await.data(200);
    key.get("/agent/keys").await.refused(403, "ERR_SCOPE");
    stage.browser.click("[data-do=end-key]").await;
    stage.browser.shows(none).await;
    key.get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_from_right_to_left_begins_at_the_left_edge_of_its_row() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    for (name, context) in [("weather", "Rain and sun."), ("الطقس", "مطر وشمس")] {
        let channel = json!({"name": name, "context": context});
        alice.post("/channels", &channel).await.data(201);
    }
    let offer = json!({"cost_per_call": 0.10, "description": "מתרגם טקסט"});
    offer_skill(&alice, "translate", &offer).await;
    stage.sign_in(&alice.key).await;
    // Where the text begins on the screen, not its box: a box as wide as the row has the same edge in both directions.
    let distances = "[...document.querySelectorAll('.two:not(.end) > bdi')].map((one) => { \
         const text = document.createRange(); text.selectNodeContents(one); \
         return Math.round(text.getBoundingClientRect().left - one.parentElement.getBoundingClientRect().left); })";
    for (view, expected) in [("channels", json!([0, 0, 0, 0])), ("market", json!([0]))] {
        stage.view(view).await;
        let count = expected.as_array().unwrap().len();
        stage
            .browser
            .eventually(&format!(
                "document.querySelectorAll('.two:not(.end) > bdi').length === {count}"
            ))
            .await;
        let found = stage.browser.run(&format!("return {distances}")).await;
        assert_eq!(found, expected, "{view}");
    }
    stage.is_clean().await;
}
