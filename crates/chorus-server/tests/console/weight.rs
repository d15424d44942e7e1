//! Performance of the page: transfer size, time to load, and ten thousand entries.

use crate::stage::{Stage, VIEWS};
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

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
    stage.disable_cache().await;
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

/// Loads of which the median counts, so that one load in a busy moment decides nothing.
const LOADS: usize = 7;
/// Series of loads that may be tried. A machine that is busy for seconds spoils a series; a page that became slower is slow in all.
const SERIES: usize = 3;
const FIRST_PAINT_MS: f64 = 500.0;

/// Loads the page and returns when the browser first drew something of it, in milliseconds after the navigation began.
async fn measure_first_paint(stage: &Stage, sign: &str) -> f64 {
    stage.goto("/console").await;
    stage
        .browser
        .eventually(&format!(
            "document.querySelector('{sign}') && performance.getEntriesByName('first-contentful-paint').length"
        ))
        .await;
    let paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime";
    stage.browser.run(paint).await.as_f64().unwrap()
}

/// The medians of the series up to the first that is within the bound.
async fn measure_medians(stage: &Stage, sign: &str) -> Vec<f64> {
    // The hub compresses each file at its first request.
    measure_first_paint(stage, sign).await;
    let mut medians = Vec::new();
    while medians.len() < SERIES
        && medians
            .last()
            .is_none_or(|median| *median >= FIRST_PAINT_MS)
    {
        let mut paints = Vec::new();
        for _ in 0..LOADS {
            paints.push(measure_first_paint(stage, sign).await);
        }
        paints.sort_by(f64::total_cmp);
        println!("{sign}: first paints {paints:.0?}");
        medians.push(paints[LOADS / 2]);
    }
    medians
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_paint_comes_within_half_a_second() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.disable_cache().await;
    let medians = measure_medians(&stage, "form.signin").await;
    assert!(
        medians.iter().any(|median| *median < FIRST_PAINT_MS),
        "before the sign-in: {medians:?} ms"
    );
    stage.sign_in(&alice.key).await;
    let medians = measure_medians(&stage, "nav.side").await;
    assert!(
        medians.iter().any(|median| *median < FIRST_PAINT_MS),
        "signed in: {medians:?} ms"
    );
}

fn read_console_file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The modules that `name` imports with statements, itself included; views are imported with calls, when they are opened.
fn collect_imports(name: &str, found: &mut BTreeSet<String>) {
    if !found.insert(name.to_owned()) {
        return;
    }
    for line in read_console_file(name).lines() {
        let Some((_, rest)) = line.split_once(" from './") else {
            continue;
        };
        collect_imports(rest.split('\'').next().unwrap(), found);
    }
}

/// A module that is not preloaded is found only after the one that imports it has come: one round trip more before the first paint.
#[test]
fn the_page_preloads_exactly_the_modules_of_its_first_paint() {
    let mut needed = BTreeSet::new();
    collect_imports("app.js", &mut needed);
    // The page names it as its script.
    needed.remove("load.js");
    let index = read_console_file("index.html");
    let preloaded: BTreeSet<String> = index
        .lines()
        .filter_map(|line| line.strip_prefix("<link rel=\"modulepreload\" href=\"/console/"))
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(preloaded, needed);
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
