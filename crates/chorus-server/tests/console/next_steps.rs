//! No view is a dead end: members and files of channels, a new message, and the next step where there is nothing yet.

use crate::stage::Stage;
use crate::support::actors::Answer;
use crate::support::actors::channel::{
    accept_invitation, add_agent, channel_history, create_channel, invite_agent, list_members,
    message_contents, post_message,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_added_by_address_or_connection_string_and_removed() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "workshop").await;
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.click("[data-tools] summary").await;
    stage.browser.write("#member-who", "nobody-here").await;
    stage.browser.click("[data-form=member] button").await;
    stage
        .browser
        .eventually("document.querySelector('[data-tools] .wrong').textContent")
        .await;
    stage
        .browser
        .run("document.querySelector('#member-who').value = ''")
        .await;
    stage.browser.write("#member-who", "bob").await;
    stage.browser.click("[data-form=member] button").await;
    stage
        .browser
        .eventually("document.querySelector('[data-members]').textContent.includes('bob@chorus')")
        .await;
    stage
        .browser
        .write("#member-who", "http://127.0.0.1:1/inbox/sk_00112233")
        .await;
    stage.browser.write("#member-name", "oak").await;
    stage.browser.click("[data-form=member] button").await;
    stage
        .browser
        .eventually(
            "document.querySelector('[data-members]').textContent.includes('by connection string')",
        )
        .await;
    assert_eq!(list_members(&alice, &room).await.len(), 3);
    stage.browser.click("[data-do=remove-member]").await;
    stage
        .browser
        .eventually("document.querySelectorAll('[data-do=remove-member]').length === 1")
        .await;
    let names: Vec<_> = list_members(&alice, &room).await;
    assert_eq!(names.len(), 2, "{names:?}");
    drop(bob);
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mention_that_calls_no_member_is_said_below_the_text_and_posted() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let carol = stage.hub.agent("carol").await;
    let room = create_channel(&alice, "workshop").await;
    add_agent(&alice, &room, &bob).await;
    invite_agent(&alice, &room, &carol).await;
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage
        .browser
        .eventually("document.querySelectorAll('.roster li').length === 3")
        .await;
    let says = |text: &str| {
        format!(
            "document.querySelector('.composer [data-warning]').textContent === {}",
            json!(text)
        )
    };
    // An address is no mention, and a name at the end may not be complete.
    let text = ".composer textarea";
    stage
        .browser
        .write(text, "@Bob, see x@bob.example, @tim")
        .await;
    stage.browser.eventually(&says("")).await;
    let warning = says("No member named @timber, @carol is in this channel.");
    stage.browser.write(text, "ber and @carol").await;
    stage.browser.click(".composer button").await;
    stage.browser.eventually(&warning).await;
    stage
        .browser
        .eventually("document.querySelector('.line.mine .said')")
        .await;
    let history = channel_history(&alice, &room, "").await;
    assert_eq!(
        message_contents(&history),
        ["@Bob, see x@bob.example, @timber and @carol"]
    );
    // It is said of that text until another one is written.
    stage.browser.eventually(&warning).await;
    stage.browser.write(text, "@bob ").await;
    stage.browser.eventually(&says("")).await;
    stage.browser.write(text, "@oak ").await;
    stage
        .browser
        .eventually(&says("No member named @oak is in this channel."))
        .await;
    stage.is_clean().await;
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_channel_are_downloaded_and_never_opened() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "workshop").await;
    let invited = alice
        .post(&format!("{room}/members"), &json!({"agent_id": bob.id}))
        .await
        .data(201);
    accept_invitation(&room, &bob, &invited).await;
    let mut inbox = bob.inbox().await;
    post_message(&alice, &room, "begin").await;
    let delivery = inbox.next("channel").await.data;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file_put",
        "arguments": {"name": "page.html", "media_type": "text/html", "data": "PGI+aGk8L2I+"}}});
    let put = stage
        .hub
        .http
        .post(delivery["mcp"]["url"].as_str().unwrap())
        .header(
            "authorization",
            delivery["mcp"]["headers"]["Authorization"]
                .as_str()
                .unwrap(),
        )
        .header("accept", "application/json, text/event-stream")
        .json(&call);
    assert_eq!(Answer::of(put).await.status, 200);
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.click("[data-tools] summary").await;
    stage.browser.shows("page.html").await;
    stage
        .browser
        .run(
            "window.saved = []; const make = URL.createObjectURL; \
             URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push([blob.type, text])); return make(blob); }",
        )
        .await;
    stage.browser.click("[data-do=download]").await;
    stage.browser.eventually("window.saved.length").await;
    assert_eq!(
        stage.browser.run("return window.saved[0]").await,
        json!(["application/octet-stream", "<b>hi</b>"])
    );
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anyone_can_be_written_to_from_conversations() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    stage.browser.shows("chorus send bob").await;
    stage.browser.click("[data-do=new-message]").await;
    stage
        .browser
        .eventually("document.querySelector('#new-addresses option[value=\"bob@chorus\"]')")
        .await;
    stage.browser.write("#new-to", "nobody").await;
    stage
        .browser
        .click("[data-form=new-message] button.first")
        .await;
    stage.browser.shows("There is no agent nobody").await;
    stage
        .browser
        .run("document.querySelector('#new-to').value = ''")
        .await;
    stage.browser.write("#new-to", "bob").await;
    stage.browser.write("#new-conversation", "plans").await;
    stage
        .browser
        .click("[data-form=new-message] button.first")
        .await;
    stage
        .browser
        .write(".composer textarea", "Shall we begin?")
        .await;
    stage.browser.click(".composer button").await;
    stage
        .browser
        .eventually("document.querySelector('.bubble.mine')")
        .await;
    let received = bob.history("").await.pop().unwrap();
    assert_eq!(received["envelope"]["conversation_id"], "plans");
    assert_eq!(received["sender_id"], alice.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_empty_view_of_a_fresh_hub_says_the_next_step() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    for (view, command) in [
        ("overview", "chorus init"),
        ("agents", "chorus register NAME --hub"),
        ("conversations", "chorus send bob"),
        ("channels", "chorus channel create team"),
        ("sessions", "chorus init"),
        ("activity", "chorus send bob"),
        ("market", "chorus offer translate"),
        ("market", "chorus hire translate --board"),
    ] {
        stage.view(view).await;
        stage.browser.shows(command).await;
        stage
            .browser
            .eventually(
                "[...document.querySelectorAll('.snippet button')].some((button) => button.textContent === 'Copy')",
            )
            .await;
    }
    stage.is_clean().await;
}
