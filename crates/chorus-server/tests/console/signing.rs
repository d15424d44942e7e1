//! Signing in and out, and what each kind of key sees.

use crate::stage::{Stage, VIEWS};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_every_view_and_the_browser_has_nothing_to_complain_of() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    alice.send_expecting("bob", "hello", "queued").await;
    bob.send_expecting("alice", "hello yourself", "queued")
        .await;
    stage.as_operator().await;
    for view in VIEWS {
        stage.view(view).await;
        stage
            .browser
            .eventually("document.querySelector('main h1')")
            .await;
    }
    stage.browser.shows("alice@chorus").await;
    // What was said is for its sender and its receiver.
    stage.view("conversations").await;
    stage.browser.shows("alice@chorus").await;
    assert_eq!(
        stage
            .browser
            .run("return document.body.innerText.includes('hello')")
            .await,
        false
    );
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sees_every_view_by_pressing_its_number() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    for (place, view) in VIEWS.iter().enumerate() {
        stage.browser.press(&(place + 1).to_string()).await;
        stage
            .browser
            .eventually(&format!(
                "document.querySelector('main .view[data-view={view}] h1')"
            ))
            .await;
        let marked = format!(
            "return document.querySelector('nav a[aria-current=page]').dataset.view === '{view}'"
        );
        assert_eq!(stage.browser.run(&marked).await, true);
    }
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stays_in_its_tab_and_a_wrong_one_nowhere() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.goto("/console").await;
    stage
        .browser
        .write("#key", "ca_00000000000000000000000000000000")
        .await;
    stage.browser.click("form.signin button").await;
    stage.browser.shows("does not know that key").await;
    assert_eq!(stage.browser.run("return sessionStorage.length").await, 0);
    stage
        .browser
        .run("document.querySelector('#key').value = ''")
        .await;
    stage.sign_in(&alice.key).await;
    let kept = format!(
        "return [JSON.stringify(localStorage), document.cookie, location.href].join().includes({})",
        json!(alice.key)
    );
    assert_eq!(stage.browser.run(&kept).await, false);
    // A reload is the same tab.
    stage.goto("/").await;
    stage.live().await;
    stage.browser.shows("alice@chorus").await;
    stage.browser.click("[data-do=leave]").await;
    stage
        .browser
        .eventually("document.querySelector('form.signin')")
        .await;
    assert_eq!(stage.browser.run("return sessionStorage.length").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_rotated_ends_the_page_and_says_so() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    alice
        .post(
            "/register",
            &crate::support::actors::registration(&alice.id),
        )
        .await
        .data(200);
    stage.browser.shows("Signed out by the hub").await;
}
