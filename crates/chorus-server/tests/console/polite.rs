//! Accessibility: keyboard, small screens, dark mode, Chinese, and contrast.

use crate::stage::{ENTER, ESCAPE, Stage, VIEWS, moment, said};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_way_from_the_key_to_an_agents_page_needs_no_mouse() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, _bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.goto("/console").await;
    stage
        .browser
        .eventually("document.activeElement?.id === 'key'")
        .await;
    stage.browser.press(&format!("{}{ENTER}", alice.key)).await;
    stage.live().await;
    stage.browser.press("2").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 2")
        .await;
    stage.browser.press("/").await;
    stage.browser.press("bob").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 1")
        .await;
    stage.browser.press(ESCAPE).await;
    stage
        .browser
        .run("document.querySelector('.rows').focus()")
        .await;
    stage.browser.press("j").await;
    stage.browser.press(ENTER).await;
    stage
        .browser
        .eventually("document.querySelector('.person h2')?.textContent === 'bob@chorus'")
        .await;
    stage.browser.press("?").await;
    stage
        .browser
        .eventually("document.querySelector('dialog[open]')")
        .await;
    stage.browser.press(ESCAPE).await;
    stage
        .browser
        .eventually("!document.querySelector('dialog')")
        .await;
    // Where the focus is can be seen.
    stage.browser.press("\u{e004}").await;
    let outlined = "return getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(stage.browser.run(outlined).await, "solid");
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_phone_every_view_is_one_column_and_nothing_sticks_out() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    bob.send_expecting("alice", &"a-word-that-does-not-end".repeat(30), "queued")
        .await;
    let frame = said(&alice, "agent_binding_moment", &moment());
    alice
        .submit("~alice", &frame)
        .await
        .recipient_count(frame["frame_id"].as_str().unwrap());
    let phone = json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
    stage
        .browser
        .devtools("Emulation.setDeviceMetricsOverride", &phone)
        .await;
    stage.sign_in(&alice.key).await;
    for place in VIEWS
        .into_iter()
        .chain(["agents/bob%40chorus", "conversations/bob%40chorus"])
    {
        stage.view(place).await;
        let wide = "return [document.documentElement.scrollWidth, document.querySelector('main').scrollWidth]";
        let wide = stage.browser.run(wide).await;
        assert!(
            wide.as_array()
                .unwrap()
                .iter()
                .all(|width| width.as_u64().unwrap() <= 360),
            "{place}: {wide}"
        );
        let below = "return document.querySelector('nav.side').getBoundingClientRect().bottom === innerHeight";
        assert_eq!(stage.browser.run(below).await, true, "{place}");
    }
    stage.browser.shows("a-word-that-does-not-end").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_dark_and_chinese_when_asked_and_stays_so() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    let paper = "return getComputedStyle(document.body).backgroundColor";
    let light = stage.browser.run(paper).await;
    stage.browser.press("t").await;
    assert_ne!(stage.browser.run(paper).await, light);
    stage.browser.press("l").await;
    stage.browser.shows("总览").await;
    assert_eq!(
        stage
            .browser
            .run("return document.documentElement.lang")
            .await,
        "zh-CN"
    );
    stage.goto("/").await;
    stage.browser.shows("总览").await;
    assert_ne!(stage.browser.run(paper).await, light);
    for view in VIEWS {
        stage.view(view).await;
        // A key of the dictionary that has no words would be shown as itself.
        let bare = stage
            .browser
            .run("return document.body.innerText.match(/\\b(view|state|count|link|health|job)\\.[a-z]+/g)")
            .await;
        assert!(bare.is_null(), "{view}: {bare}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_colour_of_text_stands_out_from_what_is_behind_it() {
    // WCAG 2.2, 1.4.3: 4.5 to 1
    let Some(stage) = Stage::open().await else {
        return;
    };
    stage.goto("/console").await;
    for theme in ["light", "dark"] {
        let script = format!(
            "document.documentElement.dataset.theme = '{theme}'; const probe = document.createElement('p'); \
             document.body.append(probe); \
             const colour = (name) => {{ probe.style.color = `var(--${{name}})`; \
               return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number); }}; \
             const light = (name) => {{ const [r, g, b] = colour(name).map((v) => {{ v /= 255; \
               return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }}); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }}; \
             const ratio = (a, b) => {{ const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); }}; \
             const pairs = []; \
             for (const ink of ['ink', 'quiet', 'accent', 'good', 'wait', 'bad', 'blue', 'violet']) \
               for (const behind of ['paper', 'sheet', 'raised']) pairs.push([ink, behind, ratio(ink, behind)]); \
             for (const tone of ['good', 'wait', 'bad', 'accent']) pairs.push([tone, `${{tone}}-soft`, ratio(tone, `${{tone}}-soft`)]); \
             pairs.push(['on-accent', 'accent', ratio('on-accent', 'accent')], ['quiet', 'accent-soft', ratio('quiet', 'accent-soft')]); \
             return pairs.filter((one) => one[2] < 4.5)"
        );
        let weak = stage.browser.run(&script).await;
        assert_eq!(weak, json!([]), "{theme}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_control_has_a_name_and_every_page_its_landmarks() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let frame = said(&alice, "agent_binding_moment", &moment());
    alice
        .submit("~alice", &frame)
        .await
        .recipient_count(frame["frame_id"].as_str().unwrap());
    stage.sign_in(&alice.key).await;
    for view in VIEWS {
        stage.view(view).await;
        let nameless = stage
            .browser
            .run(
                "return [...document.querySelectorAll('button, a, input, select, textarea, [role=listbox], [role=img]')] \
                 .filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length || one.querySelector('img'))) \
                 .map((one) => one.outerHTML)",
            )
            .await;
        assert_eq!(nameless, json!([]), "{view}");
        let marks = stage
            .browser
            .run("return ['header', 'nav', 'main', 'h1'].map((one) => document.querySelectorAll(one).length >= 1)")
            .await;
        assert_eq!(marks, json!([true, true, true, true]), "{view}");
    }
}
