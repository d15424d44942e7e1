//! What the page says when the hub does not answer or the key has ended.

use crate::stage::Stage;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_away_is_said_plainly_and_what_was_written_is_kept() {
    let Some(mut stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage.stop_hub().await;
    let banner = "document.querySelector('.outage:not([hidden])')?.dataset.outage";
    stage
        .browser
        .eventually(&format!("{banner} === 'away'"))
        .await;
    stage.browser.write(".composer textarea", "for later").await;
    stage.browser.click(".composer button").await;
    stage
        .browser
        .eventually(
            "document.querySelector('.composer .wrong').textContent === 'The hub does not answer.'",
        )
        .await;
    // A view that was never opened says why it does not open.
    stage.browser.run("location.hash = '#/market'").await;
    stage
        .browser
        .shows("This view opens as soon as it does.")
        .await;
    stage
        .browser
        .eventually("document.querySelector('nav a[aria-current]').dataset.view === 'market'")
        .await;
    stage.hub.restart().await;
    stage
        .browser
        .eventually("document.querySelector('main .view[data-view=market] .tile')")
        .await;
    stage
        .browser
        .eventually(&format!("{banner} === undefined"))
        .await;
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelector('.composer textarea')?.value === 'for later'")
        .await;
    stage.browser.click(".composer button").await;
    stage
        .browser
        .eventually("document.querySelector('.bubble.mine')")
        .await;
    assert_eq!(bob.history("").await.len(), 1);
}

/// Lets no timer end while `window.isFrozen` is true, so that the page tries nothing by itself.
const FREEZE_TIMERS: &str = "const start = window.setTimeout; \
     window.setTimeout = (work, ms, ...rest) => start(() => window.isFrozen || work(...rest), ms)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn try_now_connects_without_waiting_for_the_next_attempt() {
    let Some(mut stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.browser.run(FREEZE_TIMERS).await;
    stage.stop_hub().await;
    let banner = "document.querySelector('.outage:not([hidden])')?.dataset.outage";
    stage
        .browser
        .eventually(&format!("{banner} === 'away'"))
        .await;
    stage.browser.run("window.isFrozen = true").await;
    stage.hub.restart().await;
    stage.browser.shows("Try now").await;
    stage.browser.click(".outage [data-do=retry]").await;
    stage
        .browser
        .eventually(&format!("{banner} === undefined"))
        .await;
    stage.live().await;
    bob.send_expecting("alice", "I am back", "delivered_sse")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_rotated_is_said_plainly_with_a_way_back() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    let rotated = alice
        .post("/agent/keys/rotate", &json!({"overlap_s": 0}))
        .await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    stage
        .browser
        .eventually("document.querySelector('.outage:not([hidden])')?.dataset.outage === 'ended'")
        .await;
    stage.browser.shows("Your key has ended").await;
    stage.browser.click(".outage button").await;
    stage
        .browser
        .eventually("document.querySelector('form.signin #key')")
        .await;
}
