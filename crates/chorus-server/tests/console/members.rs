//! The people of a channel and of a conversation: avatars, grouped messages, a member that leaves, and one that takes nothing.

use crate::stage::Stage;
use crate::support::actors::Reply;
use crate::support::actors::channel::{add_agent, create_channel, list_members, post_message};
use crate::support::actors::remote_member::RemoteMember;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_a_channel_and_can_remove_no_other() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let (bob, carol) = (stage.hub.agent("bob").await, stage.hub.agent("carol").await);
    let room = create_channel(&alice, "launch").await;
    for member in [&bob, &carol] {
        add_agent(&alice, &room, member).await;
    }
    stage.sign_in(&bob.key).await;
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.click(".channel-tools summary").await;
    let buttons = "JSON.stringify([...document.querySelectorAll('[data-do=remove-member]')].map((one) => one.textContent))";
    stage
        .browser
        .eventually(&format!("{buttons} === '[\"Leave\"]'"))
        .await;
    stage.browser.click("[data-do=remove-member]").await;
    stage
        .browser
        .eventually("location.hash === '#/channels'")
        .await;
    let members = list_members(&alice, &room).await;
    let names: Vec<_> = members.iter().map(|member| &member["name"]).collect();
    assert_eq!(names, ["alice", "carol"]);
    bob.get(&room).await.refused(404, "ERR_NOT_FOUND");
}

//
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_took_no_message_is_marked_with_the_reason() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let room = create_channel(&alice, "launch").await;
    let oak = RemoteMember::scripted(&stage.hub, |_| Reply::json(403, "{}")).await;
    let body = json!({"connection": oak.url(), "name": "oak"});
    alice
        .post(&format!("{room}/members"), &body)
        .await
        .data(201);
    post_message(&alice, &room, "@oak are you there?").await;
    stage.sign_in(&alice.key).await;
    stage.view(room.trim_start_matches('/')).await;
    let mark =
        "[...document.querySelectorAll('.roster .chip.bad')].map((one) => one.textContent).join()";
    stage
        .browser
        .eventually(&format!("/^took nothing: .*403/.test({mark})"))
        .await;
    stage.browser.shows("did not take a message").await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_one_avatar_in_every_view() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "launch").await;
    add_agent(&alice, &room, &bob).await;
    bob.send_expecting("alice", "hello", "queued").await;
    stage.sign_in(&alice.key).await;
    let mut seen = Vec::new();
    for view in ["agents", "conversations", room.trim_start_matches('/')] {
        stage.view(view).await;
        let find = "const avatar = [...document.querySelectorAll('main .avatar')].find((one) => /^B\\s*bob/.test(one.parentElement.textContent))";
        stage
            .browser
            .eventually(&format!("(() => {{ {find}; return avatar; }})()"))
            .await;
        let colour = format!("{find}; return getComputedStyle(avatar).backgroundColor");
        seen.push(stage.browser.run(&colour).await);
    }
    assert!(seen.iter().all(|colour| *colour == seen[0]), "{seen:?}");
    // Others have another colour, and who listens has a mark of it.
    stage.view("agents").await;
    let marks = "JSON.stringify(['alice', 'bob'].map((name) => { \
         const row = [...document.querySelectorAll('.rows .row')].find((one) => one.textContent.includes(`${name}@chorus`)); \
         const avatar = row?.querySelector('.avatar'); \
         return avatar && [avatar.textContent, avatar.classList.contains('is-on'), avatar.classList.contains('is-off')]; }))";
    let expected = json!([["A", true, false], ["B", false, true]]).to_string();
    stage
        .browser
        .eventually(&format!("{marks} === {}", json!(expected)))
        .await;
    let colours = "return new Set([...document.querySelectorAll('.rows .row .avatar')].map((one) => getComputedStyle(one).backgroundColor)).size";
    assert_eq!(stage.browser.run(colours).await, 2);
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_author_in_a_row_are_one_group_in_a_conversation() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    for (from, to, text) in [
        (&bob, "alice", "one"),
        (&bob, "alice", "two"),
        (&alice, "bob", "three"),
        (&alice, "bob", "four"),
        (&bob, "alice", "five"),
    ] {
        let sent = from.send(to, text).await;
        assert!((200..300).contains(&sent.status), "{sent:?}");
    }
    stage.view("conversations/bob%40chorus").await;
    // Only the first of a group has the culture of its author.
    let groups = "JSON.stringify([...document.querySelectorAll('.bubble')].map((one) => \
         [one.querySelector('.said').textContent, one.classList.contains('joined'), one.querySelector('footer .chip') !== null]))";
    let expected = json!([
        ["one", false, true],
        ["two", true, false],
        ["three", false, true],
        ["four", true, false],
        ["five", false, true]
    ]);
    stage
        .browser
        .eventually(&format!("{groups} === {}", json!(expected.to_string())))
        .await;
    stage.is_clean().await;
}
