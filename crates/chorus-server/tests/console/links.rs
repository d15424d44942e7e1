//! Signing in with a single-use link, and what a link does when it is used again.

use crate::browser::Browser;
use crate::stage::Stage;
use crate::support::actors::Caller;
use serde_json::json;

/// A fresh link of this key, as `chorus console` makes it.
async fn make_link(caller: &Caller) -> String {
    let link = caller.post("/console/links", &json!({})).await.data(200);
    format!("/console#/link/{}", link["link_token"].as_str().unwrap())
}

async fn stored_credential(browser: &Browser) -> String {
    let stored = browser
        .run("return sessionStorage.getItem('chorus.key') ?? ''")
        .await;
    stored.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_signs_an_agent_in_once_and_leaves_the_address_bar() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let link = make_link(&alice).await;
    stage.goto(&link).await;
    stage.live().await;
    stage.browser.shows("alice@chorus").await;
    let address = stage.browser.run("return location.href").await;
    assert_eq!(address, format!("{}/console#/overview", stage.hub.url));
    let credential = stored_credential(&stage.browser).await;
    assert!(credential.starts_with("cc_"), "the key stays where it is");
    for url in stage.browser.requests().await {
        assert!(!url.contains("cl_") && !url.contains("cc_"), "{url}");
    }
    // Signing out ends the session on the hub, and not the key.
    stage.browser.click("[data-do=leave]").await;
    stage
        .browser
        .eventually("document.querySelector('form.signin')")
        .await;
    let session = alice.with_key(&credential);
    session
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    alice.get("/agent/messages").await.data(200);
    // The link was spent by its first use.
    stage.goto("/docs").await;
    stage.goto(&link).await;
    stage.browser.shows("This link was used before").await;
    stage.browser.shows("chorus console").await;
    assert_eq!(stored_credential(&stage.browser).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_signs_an_operator_in_and_a_second_link_in_the_same_tab_takes_over() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.goto(&make_link(&stage.hub.operator()).await).await;
    stage.live().await;
    stage.browser.shows("Operator").await;
    stage.is_clean().await;
    let second = make_link(&alice).await;
    let fragment = second.split('#').nth(1).unwrap();
    stage
        .browser
        .run(&format!("location.hash = {}", json!(fragment)))
        .await;
    stage
        .browser
        .eventually("document.querySelector('.who')?.textContent.includes('alice@chorus')")
        .await;
    stage.live().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sign_in_page_says_what_this_is_and_where_the_key_is() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    stage.goto("/").await;
    for text in [
        "This is a Chorus hub",
        "chorus console",
        "chorus register --show-key",
        &format!("chorus register NAME --hub {}", stage.hub.url),
    ] {
        stage.browser.shows(text).await;
    }
    stage.is_clean().await;
}
