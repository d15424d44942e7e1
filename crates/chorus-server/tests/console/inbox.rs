//! The inbox: conversations page by page from the hub, search, unread counts, and the first view.

use crate::stage::{Stage, moment, offer_skill, said};
use crate::support::actors::Agent;
use crate::support::actors::channel::{add_agent, create_channel, invite_agent, post_message};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// More messages than one page of `GET /conversations` covers (2 000).
const CHATTER: usize = 2_300;

/// A message in a conversation with a name.
async fn write_in(agent: &Agent, to: &str, conversation: &str, text: &str) -> Value {
    let mut message = agent.message(to, text);
    message["envelope"]["conversation_id"] = json!(conversation);
    agent.post("/messages", &message).await.data(202)
}

async fn type_search(stage: &Stage, text: &str) {
    let script = format!(
        "const field = document.querySelector('main input[type=search]'); field.value = {}; \
         field.dispatchEvent(new Event('input'))",
        json!(text)
    );
    stage.browser.run(&script).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_chatty_agent_hides_no_other_conversation() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let (kim, yusuf) = (stage.hub.agent("kim").await, stage.hub.agent("yusuf").await);
    write_in(&yusuf, "alice", "planning-7", "The needle is here.").await;
    let sends = (0..CHATTER).map(|number| {
        let kim = &kim;
        async move { kim.send("alice", &format!("chatter {number}")).await.status }
    });
    let sent: Vec<u16> = stream::iter(sends).buffer_unordered(64).collect().await;
    assert!(sent.iter().all(|status| *status == 202));
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    let row = "document.querySelector('.picks a[data-key=\"yusuf@chorus planning-7\"]')";
    stage.browser.eventually(row).await;
    let unread = "document.querySelector('.picks a[data-key=\"kim@chorus \"] .badge')?.textContent === '2,300'";
    stage.browser.eventually(unread).await;
    // A link to a conversation opens it, however much was said elsewhere since.
    stage.view("conversations/yusuf%40chorus/planning-7").await;
    stage
        .browser
        .eventually(
            "document.querySelector('.bubble .said')?.textContent === 'The needle is here.'",
        )
        .await;
    // The hub searches, and what it finds opens at its place.
    type_search(&stage, "needle").await;
    let found =
        "document.querySelector('.picks a[data-key^=\"found \"] mark')?.textContent === 'needle'";
    stage.browser.eventually(found).await;
    stage.browser.click(".picks a[data-key^='found ']").await;
    stage
        .browser
        .eventually("document.querySelector('.thread-row.is-found')")
        .await;
    // The long one comes page by page.
    stage.view("conversations/kim%40chorus").await;
    let count = |number: usize| format!("document.querySelectorAll('.bubble').length === {number}");
    stage.browser.eventually(&count(50)).await;
    stage.browser.click(".thread > button").await;
    stage.browser.eventually(&count(100)).await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_every_pair_that_wrote() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    alice.send_expecting("bob", "secret", "queued").await;
    bob.send_expecting("alice", "secret", "queued").await;
    stage.as_operator().await;
    stage.view("conversations").await;
    let pair =
        "document.querySelector('.picks .pick')?.textContent.includes('alice@chorus↔bob@chorus')";
    stage.browser.eventually(pair).await;
    stage
        .browser
        .eventually("document.querySelector('.picks .pick .end b').textContent === '2'")
        .await;
    let text = "return document.body.innerText.includes('secret')";
    assert_eq!(stage.browser.run(text).await, false);
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_view_shows_what_needs_the_person() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.browser.shows("Nothing needs you now.").await;
    // A message, a decision, work to do, an invitation, and a delivery that failed.
    bob.send_expecting("alice", "Are you there?", "delivered_sse")
        .await;
    let frame = said(&alice, "agent_binding_moment", &moment());
    alice.submit("~alice", &frame).await;
    offer_skill(&alice, "translate", &json!({"cost_per_call": 0.10})).await;
    let job = json!({"skill_name": "translate", "budget": 0.25, "input_data": {}});
    assert_eq!(bob.post("/jobs", &job).await.status, 202);
    let room = create_channel(&bob, "launch").await;
    invite_agent(&bob, &room, &alice).await;
    let card = json!({"endpoint": "http://127.0.0.1:9/receive"});
    stage.hub.agent_with("dave@chorus", &card).await;
    alice.send_expecting("dave", "lost", "failed").await;
    for need in ["unread", "jobs", "invitations", "failed"] {
        let section =
            format!("document.querySelector('[data-need={need}] .badge')?.textContent === '1'");
        stage.browser.eventually(&section).await;
    }
    stage
        .browser
        .eventually("document.querySelector('.needs .decision .option')")
        .await;
    let above = "return document.querySelector('.needs').getBoundingClientRect().top \
         < document.querySelector('.tiles').getBoundingClientRect().top";
    assert_eq!(stage.browser.run(above).await, true);
    // Beside the decision where there is room for it, below it on a phone.
    let order = "const box = (css) => document.querySelector(css).getBoundingClientRect(); \
         const [first, second] = [box('.needs .decision'), box('[data-need=unread]')]; \
         return [second.left >= first.right, second.top >= first.bottom]";
    assert_eq!(stage.browser.run(order).await, json!([true, false]));
    stage.set_screen(390, 844).await;
    assert_eq!(stage.browser.run(order).await, json!([false, true]));
    stage.set_screen(1280, 800).await;
    // The title counts what waits for an answer.
    stage
        .browser
        .eventually("document.title === '(2) Chorus'")
        .await;
    // A failed delivery is dismissed until the next one fails.
    stage.browser.click("[data-need=failed] button").await;
    stage
        .browser
        .eventually("!document.querySelector('[data-need=failed]')")
        .await;
    stage.browser.click("[data-need=unread] .picks a").await;
    stage
        .browser
        .eventually("document.querySelector('.bubble .said')?.textContent === 'Are you there?'")
        .await;
    stage.is_clean().await;
}

/// More jobs than the first view reads of one state.
const MANY_JOBS: usize = 21;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_view_says_that_more_jobs_wait_than_it_read() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    for worker in [&alice, &bob] {
        offer_skill(worker, "translate", &json!({"cost_per_call": 0.10})).await;
    }
    let _listening = (alice.inbox().await, bob.inbox().await);
    let hire = async |requester: &Agent, worker: &Agent, count: usize| {
        for _ in 0..count {
            let job = json!({"skill_name": "translate", "budget": 0.25, "input_data": {}, "agent_id": worker.id});
            let answer = requester.post("/jobs", &job).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    };
    // The newer jobs that she gave to others do not hide the one that waits for her.
    hire(&bob, &alice, 1).await;
    hire(&alice, &bob, MANY_JOBS).await;
    stage.sign_in(&alice.key).await;
    let badge = |text: &str| {
        format!("document.querySelector('[data-need=jobs] .badge')?.textContent === '{text}'")
    };
    stage.browser.eventually(&badge("1")).await;
    let link = "document.querySelector('[data-need=jobs] p a')";
    assert_eq!(
        stage.browser.run(&format!("return {link}")).await,
        Value::Null
    );
    hire(&bob, &alice, MANY_JOBS - 1).await;
    stage.browser.eventually(&badge("20+")).await;
    stage.browser.shows("More than 20 wait; see all").await;
    stage.browser.click("[data-need=jobs] p a").await;
    stage
        .browser
        .eventually("location.hash === '#/market'")
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_comes_page_by_page_and_is_searched_by_the_hub() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let room = create_channel(&alice, "launch").await;
    for number in 0..130 {
        let text = if number == 3 {
            "the needle".to_owned()
        } else {
            format!("post {number}")
        };
        post_message(&alice, &room, &text).await;
    }
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.shows("post 129").await;
    let loaded = "return document.body.innerText.includes('the needle')";
    assert_eq!(stage.browser.run(loaded).await, false);
    // One author's posts in a row are one group with one name.
    let heads = "document.querySelectorAll('.line header').length < 10 && document.querySelectorAll('.line').length > 90";
    stage.browser.eventually(heads).await;
    let search = "const field = document.querySelector('.thread-head input'); field.value = 'needle'; \
         field.dispatchEvent(new Event('input'))";
    stage.browser.run(search).await;
    stage.browser.click(".found button").await;
    stage
        .browser
        .eventually("document.querySelector('.is-found .said')?.textContent === 'the needle'")
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_badge_of_an_owned_channel_counts_what_others_post() {
    // the owner is a person in the channel, so its inbox gets no deliveries of it.
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "launch").await;
    add_agent(&alice, &room, &bob).await;
    post_message(&alice, &room, "begin").await;
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage
        .browser
        .eventually("document.querySelector('.line.mine .said')?.textContent === 'begin'")
        .await;
    stage.view("overview").await;
    let badge = |text: &str| {
        format!(
            "document.querySelector('nav a[data-view=channels] .badge:not([hidden])')?.textContent === '{text}'"
        )
    };
    post_message(&bob, &room, "one").await;
    // What the owner posts elsewhere is not new to it.
    post_message(&alice, &room, "mine").await;
    post_message(&bob, &room, "two").await;
    stage.browser.eventually(&badge("2")).await;
    let title = |text: &str| format!("document.title === '{text}'");
    stage.browser.eventually(&title("(2) Chorus")).await;
    // Read here, it is counted no more, and counting goes on from there.
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.shows("two").await;
    let marked = "document.querySelector('.thread-row:has([data-mark=new]) .said')?.textContent";
    stage
        .browser
        .eventually(&format!("{marked} === 'one'"))
        .await;
    stage
        .browser
        .eventually("document.querySelector('nav a[data-view=channels] .badge').hidden")
        .await;
    stage.browser.eventually(&title("Chorus")).await;
    stage.view("overview").await;
    post_message(&bob, &room, "three").await;
    stage.browser.eventually(&badge("1")).await;
    stage.is_clean().await;
}

/// More messages of one channel than a page would read back one by one.
const CHANNEL_CHATTER: usize = 2_700;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_to_a_message_of_a_channel_opens_however_far_back_it_is() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let room = create_channel(&alice, "launch").await;
    let needle = post_message(&alice, &room, "the needle").await;
    let posts = (0..CHANNEL_CHATTER).map(|number| {
        let (alice, room) = (&alice, &room);
        async move { post_message(alice, room, &format!("post {number}")).await }
    });
    stream::iter(posts)
        .buffer_unordered(64)
        .for_each(|_| std::future::ready(()))
        .await;
    post_message(&alice, &room, "the last").await;
    stage.sign_in(&alice.key).await;
    let place = room.trim_start_matches('/');
    stage.view(&format!("{place}/{}", needle["cursor"])).await;
    let found = "document.querySelector('.is-found .said')?.textContent === 'the needle'";
    stage.browser.eventually(found).await;
    let count = "document.querySelectorAll('.line').length";
    let shown = stage.browser.run(&format!("return {count}")).await;
    assert!(shown.as_u64().unwrap() <= 100, "{shown} rows");
    // From there on it is read page by page, and the place stays.
    stage.browser.click("[data-key=later]").await;
    stage
        .browser
        .eventually(&format!("{count} > 140 && {found}"))
        .await;
    let last = "document.querySelector('.thread-row:last-child .said')?.textContent";
    assert_ne!(
        stage.browser.run(&format!("return {last}")).await,
        "the last"
    );
    // A post that comes now is not put behind a gap.
    post_message(&alice, &room, "after it").await;
    stage.browser.click(".jump").await;
    stage
        .browser
        .eventually(&format!("{last} === 'after it'"))
        .await;
    // At the end the channel is live again.
    post_message(&alice, &room, "live").await;
    stage
        .browser
        .eventually(&format!("{last} === 'live'"))
        .await;
    stage.is_clean().await;
}
