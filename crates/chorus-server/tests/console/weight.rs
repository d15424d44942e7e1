//! Performance of the page: transfer size, time to load, and ten thousand entries.

use crate::stage::{Stage, VIEWS};
use futures_util::{StreamExt, stream};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_weighs_less_than_200_kilobytes_and_shows_itself_within_a_second() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    // From before the first script on: when the counters are there.
    let watch = "new MutationObserver(() => { if (window.first === undefined && document.querySelector('.tile dd')) \
                 window.first = performance.now(); }).observe(document, {childList: true, subtree: true})";
    stage
        .browser
        .devtools(
            "Page.addScriptToEvaluateOnNewDocument",
            &json!({ "source": watch }),
        )
        .await;
    stage
        .browser
        .devtools("Network.setCacheDisabled", &json!({"cacheDisabled": true}))
        .await;
    let mut best = f64::MAX;
    // What else the machine does is not the page's doing, so the best of three counts.
    for _ in 0..3 {
        stage.goto("/console").await;
        stage.browser.eventually("window.first").await;
        best = best.min(
            stage
                .browser
                .run("return window.first")
                .await
                .as_f64()
                .unwrap(),
        );
    }
    assert!(best < 1000.0, "{best} ms");
    for view in VIEWS {
        stage.view(view).await;
    }
    let weight = stage
        .browser
        .run(
            "return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')) \
             .filter((one) => one.entryType === 'navigation' || new URL(one.name).pathname.startsWith('/console/')) \
             .reduce((sum, one) => sum + one.transferSize, 0)",
        )
        .await;
    let weight = weight.as_f64().unwrap();
    assert!((20_000.0..200_000.0).contains(&weight), "{weight} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_entries_scroll_smoothly_and_are_searched_at_once() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, _bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    // A message is two entries.
    let sends = (0..5_000).map(|_| alice.send("bob", "x").map_status());
    let sent: Vec<u16> = stream::iter(sends).buffer_unordered(64).collect().await;
    assert!(sent.iter().all(|status| *status == 202));
    stage.hub.agent("carol").await;
    stage.as_operator().await;
    stage.view("activity").await;
    stage
        .browser
        .eventually("/of 1\\d,\\d\\d\\d/.test(document.body.innerText)")
        .await;
    let scrolled = stage
        .browser
        .run_async(
            "const done = arguments[0]; const box = document.querySelector('.rows'); const times = []; const gaps = []; \
             let step = 0; let last = performance.now(); \
             const turn = () => { \
               const now = performance.now(); gaps.push(now - last); last = now; \
               const began = performance.now(); \
               box.scrollTop = (step * 7919) % (box.scrollHeight - box.clientHeight); box.dispatchEvent(new Event('scroll')); \
               void box.querySelector('.row').getBoundingClientRect(); times.push(performance.now() - began); \
               if (++step < 120) requestAnimationFrame(turn); \
               else { const sorted = (all) => all.sort((a, b) => a - b); \
                 done({work: sorted(times)[60], gap: sorted(gaps)[60], rows: box.querySelectorAll('.row').length, \
                   height: box.scrollHeight}); } }; \
             requestAnimationFrame(turn)",
        )
        .await;
    // A picture takes 16 ms; the page may have half of it.
    assert!(scrolled["work"].as_f64().unwrap() < 8.0, "{scrolled}");
    assert!(scrolled["gap"].as_f64().unwrap() < 50.0, "{scrolled}");
    assert!(scrolled["rows"].as_u64().unwrap() < 80, "{scrolled}");
    assert!(
        scrolled["height"].as_f64().unwrap() > 10_000.0 * 30.0,
        "{scrolled}"
    );
    let searched = stage
        .browser
        .run(
            "const field = document.querySelector('input[type=search]'); field.value = 'carol'; \
             const began = performance.now(); field.dispatchEvent(new Event('input')); \
             return {took: performance.now() - began, found: document.querySelectorAll('.rows .row:not([hidden])').length}",
        )
        .await;
    assert_eq!(searched["found"], 1, "{searched}");
    assert!(searched["took"].as_f64().unwrap() < 250.0, "{searched}");
}

/// The status of an answer alone, so that five thousand of them are small.
trait MapStatus {
    fn map_status(self) -> impl Future<Output = u16>;
}

impl<F: Future<Output = crate::support::actors::Answer>> MapStatus for F {
    async fn map_status(self) -> u16 {
        self.await.status
    }
}
