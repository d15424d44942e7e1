//! Live updates: the page shows events as they happen, and catches up after the hub was down.

use crate::stage::{Stage, said};
use crate::support::actors::channel::{create_channel, invite_agent};
use chorus_hub::Clock;
use serde_json::{Value, json};
use std::time::Duration;

fn millis() -> f64 {
    Clock::system().now().0 as f64 / 1000.0
}

/// Notes the time at which `text` first comes into the page.
fn watch_for(text: &str) -> String {
    format!(
        "window.seen = undefined; new MutationObserver(() => {{ if (window.seen === undefined && \
         document.body.innerText.includes({})) window.seen = Date.now(); }}).observe(document.body, {{childList: true, \
         subtree: true, characterData: true}})",
        json!(text)
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_on_the_page_within_a_second_of_being_sent() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    stage.browser.run(&watch_for("are you there?")).await;
    bob.send_expecting("alice", "are you there?", "delivered_sse")
        .await;
    let sent = millis();
    stage.browser.eventually("window.seen").await;
    let took = stage
        .browser
        .run("return window.seen")
        .await
        .as_f64()
        .unwrap()
        - sent;
    assert!(took < 1000.0, "{took} ms");
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_who_writes_to_whom_within_a_second() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, _bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.as_operator().await;
    stage.view("activity").await;
    stage.browser.run(&watch_for("message queued")).await;
    alice.send_expecting("bob", "hello", "queued").await;
    let sent = millis();
    stage.browser.eventually("window.seen").await;
    let took = stage
        .browser
        .run("return window.seen")
        .await
        .as_f64()
        .unwrap()
        - sent;
    assert!(took < 1000.0, "{took} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_goes_from_queued_to_delivered_to_acknowledged_before_ones_eyes() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage.browser.write(".composer textarea", "shall we?").await;
    stage.browser.click(".composer button").await;
    let state = |word: &str| {
        format!("document.querySelector('.bubble.mine .stand')?.dataset.state === '{word}'")
    };
    stage.browser.eventually(&state("queued")).await;
    let mut inbox = bob.inbox_after("0").await;
    let message = inbox.next("message").await;
    assert_eq!(
        (message.message_text(), &message.data["sender_id"]),
        ("shall we?", &json!("alice@chorus"))
    );
    stage.browser.eventually(&state("delivered")).await;
    bob.respond(&message.data["trace_id"], &json!({"status": "ok"}))
        .await
        .data(200);
    stage.browser.eventually(&state("acknowledged")).await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_goes_on_where_it_was_after_the_hub_restarts() {
    let Some(mut stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    bob.send_expecting("alice", "before", "delivered_sse").await;
    stage.browser.shows("before").await;
    stage.stop_hub().await;
    stage.browser.shows("Reconnecting…").await;
    stage.hub.restart().await;
    // Before the page is back: it has to be replayed, not only heard.
    bob.send("alice", "while you were away").await;
    stage.live().await;
    stage.browser.shows("while you were away").await;
    bob.send_expecting("alice", "and after", "delivered_sse")
        .await;
    stage
        .browser
        .eventually("document.querySelectorAll('.bubble .said').length === 3")
        .await;
    let texts = stage
        .browser
        .run("return [...document.querySelectorAll('.bubble .said')].map((one) => one.textContent)")
        .await;
    assert_eq!(texts, json!(["before", "while you were away", "and after"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_says_that_frames_were_missed() {
    // FRM-71: a hub that restarts has lost what it kept
    let Some(mut stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    let payload = json!({"advisory_text": "before the restart"});
    let frame = said(&alice, "agent_advisory", &payload);
    alice.submit("~alice", &frame).await;
    stage.browser.shows("before the restart").await;
    let note = "document.querySelector('[data-gap]').hidden";
    stage.browser.eventually(note).await;
    stage.stop_hub().await;
    stage.hub.restart().await;
    stage.browser.eventually(&format!("!{note}")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_looks_takes_no_message_from_an_agents_endpoint() {
    // An open inbox is preferred to an endpoint, so a page that opened one would have what is meant for the agent.
    let Some(stage) = Stage::open().await else {
        return;
    };
    let mut webhook =
        crate::support::actors::Webhook::replying(crate::support::actors::Reply::ok()).await;
    let alice = stage.hub.agent_with_webhook("alice", &webhook.url()).await;
    let bob = stage.hub.agent("bob").await;
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    bob.send_expecting("alice", "for the agent", "delivered")
        .await;
    assert_eq!(
        webhook.next_request().await.json()["envelope"]["original_text"],
        "for the agent"
    );
    stage.browser.shows("for the agent").await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_and_charts_move_by_themselves() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.as_operator().await;
    let tile = |at: usize| format!("document.querySelectorAll('.tile dt + dd')[{at}]?.textContent");
    stage
        .browser
        .eventually(&format!("{} === '2'", tile(0)))
        .await;
    let _inbox = bob.inbox().await;
    alice.send_expecting("bob", "one", "delivered_sse").await;
    stage
        .browser
        .eventually(&format!("{} === '1'", tile(2)))
        .await;
    stage
        .browser
        .eventually("document.querySelector('.online')?.textContent.includes('bob@chorus')")
        .await;
    stage
        .browser
        .eventually(
            "document.querySelector('.chart.messages .edge')?.getAttribute('d')?.includes('L')",
        )
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_online_where_the_page_says_so() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage
        .browser
        .shows("so it counts as online while this page is open")
        .await;
    // An agent with two inboxes is one agent; the list beside the number has as many names.
    let bob = stage.hub.agent("bob").await;
    let _inboxes = (bob.inbox().await, bob.inbox().await);
    let tile = "[...document.querySelectorAll('.tile')].find((one) => one.querySelector('dt').textContent === 'Online')";
    let counted = format!(
        "{tile}?.querySelector('dd').textContent === '2' && document.querySelectorAll('.online a').length === 2"
    );
    stage.browser.eventually(&counted).await;
    let names = "[...document.querySelectorAll('.online .name')].map((one) => one.textContent).sort().join()";
    assert_eq!(
        stage.browser.run(&format!("return {names}")).await,
        "alice@chorus,bob@chorus"
    );
    let said = stage.browser.run("return document.body.innerText").await;
    for other_word in ["Open inboxes", "frame streams", "0 online"] {
        assert!(!said.as_str().unwrap().contains(other_word), "{said}");
    }
    stage.is_clean().await;
}

impl Stage {
    /// In the view of the channels, with the form that is at the head of the list, behind a button.
    async fn make_channel(&self, name: &str) {
        let above = "return document.querySelector('[data-do=new-channel]').getBoundingClientRect().bottom \
             <= document.querySelector('.master .picks').getBoundingClientRect().top";
        assert_eq!(self.browser.run(above).await, true);
        self.browser.click("[data-do=new-channel]").await;
        self.browser
            .write("[data-form=new-channel] input", name)
            .await;
        self.browser.click("[data-form=new-channel] button").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_unfolds_while_agents_work_in_it() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    stage.sign_in(&alice.key).await;
    stage.view("channels").await;
    stage.make_channel("launch").await;
    stage.browser.shows("launch").await;
    let rooms = alice.get("/channels").await.data(200);
    let id = rooms[0]["id"].as_str().unwrap().to_owned();
    alice
        .post(
            &format!("/channels/{id}/members"),
            &json!({"agent_id": "bob@chorus"}),
        )
        .await
        .data(201);
    stage.browser.shows("invited").await;
    bob.post(&format!("/channels/{id}/members/bob/accept"), &json!({}))
        .await
        .data(200);
    stage.browser.shows("came in").await;
    stage
        .browser
        .write(".composer textarea", "@bob what is the weather?")
        .await;
    stage.browser.click(".composer button").await;
    inbox.next("channel_invite").await;
    let delivery = inbox.next("channel").await;
    assert_eq!(
        delivery.data["message"]["content"],
        "@bob what is the weather?"
    );
    let callback = delivery.data["callback"].as_str().unwrap();
    let say = async |event: Value| {
        let posted = stage
            .hub
            .http
            .post(callback)
            .timeout(Duration::from_secs(20))
            .header("content-type", "application/json")
            .body(event.to_string());
        assert_eq!(posted.send().await.unwrap().status(), 200);
    };
    say(json!({"type": "status", "status": "looking it up"})).await;
    stage.browser.shows("looking it up").await;
    say(
        json!({"type": "tool_call", "name": "web_search", "args": {"query": "oslo"}, "id": "tc_1"}),
    )
    .await;
    stage
        .browser
        .eventually("document.querySelector('[data-call=tc_1] .dot.busy')")
        .await;
    say(json!({"type": "tool_result", "id": "tc_1", "content": "3 degrees and cloudy"})).await;
    stage
        .browser
        .eventually("document.querySelector('[data-call=tc_1] .dot.good')")
        .await;
    stage.browser.click("[data-call=tc_1] summary").await;
    stage.browser.shows("3 degrees and cloudy").await;
    say(json!({"type": "message", "content": "Cold, bring a coat."})).await;
    stage.browser.shows("Cold, bring a coat.").await;
    stage.is_clean().await;
}

/// A network change or a hub restart ends the requests under way: the page loads itself again and is not left blank.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_modules_could_not_be_fetched_loads_itself_again() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    stage.block_urls(&["*/console/shell.js"]).await;
    stage.goto("/console").await;
    assert_eq!(
        stage
            .browser
            .run("return document.querySelector('form.signin')")
            .await,
        Value::Null
    );
    stage.block_urls(&[]).await;
    stage
        .browser
        .eventually("document.querySelector('form.signin')")
        .await;
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    // A view is a module of its own, fetched when it is opened.
    stage.block_urls(&["*/console/market.js"]).await;
    stage.browser.run("location.hash = '#/market'").await;
    stage
        .browser
        .eventually(
            "performance.getEntriesByName(new URL('/console/market.js', location).href).length",
        )
        .await;
    stage.block_urls(&[]).await;
    stage
        .browser
        .eventually("document.querySelector('main .view[data-view=market]')?.childElementCount")
        .await;
}

/// A module that is really missing must not reload the page for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_whose_view_stays_missing_gives_up() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    stage.block_urls(&["*/console/market.js"]).await;
    stage.browser.run("location.hash = '#/market'").await;
    stage.browser.shows("The console could not be loaded").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invitation_to_a_channel_is_accepted_or_declined_on_the_page() {
    //
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let mut invited = Vec::new();
    for name in ["launch", "spam"] {
        let room = create_channel(&alice, name).await;
        invite_agent(&alice, &room, &bob).await;
        invited.push(room.trim_start_matches("/channels/").to_owned());
    }
    stage.sign_in(&bob.key).await;
    stage.view("channels").await;
    stage.browser.shows("invited by alice@chorus").await;
    for (id, answer) in invited.iter().zip(["accept", "decline"]) {
        let form = format!("[data-invitation='{id}']");
        stage
            .browser
            .click(&format!("{form} [data-answer={answer}]"))
            .await;
        stage
            .browser
            .eventually(&format!("!document.querySelector(\"{form}\")"))
            .await;
    }
    let rooms = bob.get("/channels").await.data(200);
    assert_eq!(rooms.as_array().unwrap().len(), 1);
    assert_eq!(rooms[0]["membership"], "joined");
    stage.is_clean().await;
}
