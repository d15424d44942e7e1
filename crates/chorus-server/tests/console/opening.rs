//! What a view with a list shows before anything in it is chosen: an entry, or what the view is for.

use crate::stage::Stage;
use crate::support::actors::channel::{add_agent, create_channel, list_members, post_message};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_open_with_one_whose_messages_stay_new_until_the_person_acts_in_it() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let room = create_channel(&alice, "launch").await;
    add_agent(&alice, &room, &bob).await;
    post_message(&alice, &room, "begin").await;
    stage.sign_in(&alice.key).await;
    // Shown once, so that later messages are new to this browser.
    stage.view(room.trim_start_matches('/')).await;
    stage.browser.shows("begin").await;
    stage.view("overview").await;
    post_message(&bob, &room, "one").await;
    let badge = "document.querySelector('nav a[data-view=channels] .badge')";
    let counted = format!("!{badge}.hidden && {badge}.textContent === '1'");
    stage.browser.eventually(&counted).await;
    // On a phone the list has the page to itself.
    stage.set_screen(390, 844).await;
    stage.view("channels").await;
    stage
        .browser
        .eventually("document.querySelector('.picks a .badge')")
        .await;
    let is_alone = "return document.querySelector('.thread') === null";
    assert_eq!(stage.browser.run(is_alone).await, true);
    stage.view("overview").await;
    stage.set_screen(1280, 800).await;
    stage.view("channels").await;
    stage
        .browser
        .eventually("document.querySelector('.picks a.is-open')?.textContent.includes('launch')")
        .await;
    let marked = "document.querySelector('.thread-row:has([data-mark=new]) .said')?.textContent";
    stage
        .browser
        .eventually(&format!("{marked} === 'one'"))
        .await;
    let pictures =
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))";
    stage.browser.run_async(pictures).await;
    assert_eq!(stage.browser.run(&format!("return {counted}")).await, true);
    stage.browser.click(".thread").await;
    stage.browser.eventually(&format!("{badge}.hidden")).await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_the_channel_that_opened_by_itself_sees_another() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let mut rooms = Vec::new();
    for name in ["launch", "retro"] {
        let room = create_channel(&alice, name).await;
        add_agent(&alice, &room, &bob).await;
        rooms.push(room);
    }
    stage.sign_in(&bob.key).await;
    stage.view("channels").await;
    stage.browser.click(".channel-tools summary").await;
    let open = "document.querySelector('.picks a.is-open bdi')?.textContent";
    let left = stage.browser.run(&format!("return {open}")).await;
    stage.browser.click("[data-do=remove-member]").await;
    let opened = format!("{open} && {open} !== {left}");
    stage.browser.eventually(&opened).await;
    let mut sizes = Vec::new();
    for room in &rooms {
        sizes.push(list_members(&alice, room).await.len());
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_an_empty_list_stands_what_the_view_is_for_and_the_next_step() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    for (view, command) in [
        ("agents", "chorus register NAME --hub"),
        ("conversations", "chorus send bob"),
        ("channels", "chorus channel create team"),
    ] {
        stage.set_screen(1280, 800).await;
        stage.view(view).await;
        let pane = format!("document.querySelector('.detail [data-intro={view}]')");
        stage
            .browser
            .eventually(&format!("{pane}?.innerText.includes({})", json!(command)))
            .await;
        // The command is said once: beside the list, or in it where there is no pane.
        let said = format!(
            "document.body.innerText.split({}).length === 2",
            json!(command)
        );
        stage.browser.eventually(&said).await;
        if view != "agents" {
            stage.set_screen(390, 844).await;
            stage.browser.eventually(&said).await;
        }
    }
    stage.is_clean().await;
}
