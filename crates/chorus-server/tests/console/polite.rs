//! Accessibility: keyboard, small screens, dark mode, Chinese, and contrast.

use crate::stage::{ENTER, ESCAPE, Stage, VIEWS, moment, said};
use crate::support::actors::channel::create_channel;
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
    stage.set_screen(360, 740).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j_and_k_move_in_every_list() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    for (name, agent) in [("carol", stage.hub.agent("carol").await), ("bob", bob)] {
        agent.send_expecting("alice", name, "queued").await;
        create_channel(&alice, name).await;
    }
    stage.sign_in(&alice.key).await;
    for view in ["conversations", "channels"] {
        stage.view(view).await;
        stage
            .browser
            .eventually("document.querySelectorAll('.picks a').length === 2")
            .await;
        let focused = |at: usize| {
            format!("document.activeElement === document.querySelectorAll('.picks a')[{at}]")
        };
        stage.browser.press("j").await;
        stage.browser.eventually(&focused(0)).await;
        stage.browser.press("j").await;
        stage.browser.eventually(&focused(1)).await;
        stage.browser.press("k").await;
        stage.browser.eventually(&focused(0)).await;
        stage.browser.press(ENTER).await;
        stage
            .browser
            .eventually("document.querySelector('.composer textarea')")
            .await;
    }
    // In the directory without a click into the list first.
    stage.view("agents").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.rows .row:not([hidden])').length === 3")
        .await;
    stage.browser.press("jj").await;
    stage
        .browser
        .eventually("document.querySelector('.row[aria-selected=true]')?.index === 1")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_definitions_are_as_screen_readers_expect_them() {
    // axe: definition-list, aria-required-children
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    for view in VIEWS {
        stage.view(view).await;
        let wrong = stage
            .browser
            .run(
                "const wrong = []; \
                 for (const box of document.querySelectorAll('[role=listbox]')) \
                   if (!box.querySelector('[role=option]:not([hidden])')) wrong.push('an empty listbox'); \
                 for (const part of document.querySelectorAll('dl > *, dl > div > *')) \
                   if (!/^(DT|DD|DIV)$/.test(part.tagName)) wrong.push(part.outerHTML); \
                 return wrong",
            )
            .await;
        assert_eq!(wrong, json!([]), "{view}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_on_every_view_can_be_read() {
    // WCAG 2.2, 1.4.3: 4.5 to 1, of what is drawn and not only of the palette.
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let text = "# Title\n**bold** `code` [link](https://a.example/)\n\n> quote\n\n```sh\nls\n```";
    bob.send_expecting("alice", text, "queued").await;
    alice.send_expecting("bob", text, "queued").await;
    let frame = said(&alice, "agent_binding_moment", &moment());
    alice.submit("~alice", &frame).await;
    stage.sign_in(&alice.key).await;
    for theme in ["light", "dark"] {
        stage
            .browser
            .run(&format!(
                "document.documentElement.dataset.theme = '{theme}'"
            ))
            .await;
        for view in VIEWS.into_iter().chain(["conversations/bob%40chorus"]) {
            stage.view(view).await;
            let weak = stage
                .browser
                .run(
                    "const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return {r, g, b, a}; }; \
                     const light = ({r, g, b}) => { const [x, y, z] = [r, g, b].map((v) => { v /= 255; \
                       return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; }; \
                     const behind = (node) => { for (let at = node; at; at = at.parentElement) { \
                       const style = getComputedStyle(at); if (style.backgroundImage !== 'none') return undefined; \
                       const colour = parse(style.backgroundColor); if (colour.a === 1) return colour; } \
                       return {r: 255, g: 255, b: 255}; }; \
                     const weak = []; \
                     for (const node of document.querySelectorAll('body *')) { \
                       if (!node.checkVisibility() || ![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue; \
                       if (node.closest('button:disabled, .unseen, .skip')) continue; \
                       const ground = behind(node); if (!ground) continue; \
                       const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground)].sort((x, y) => y - x); \
                       if ((a + 0.05) / (b + 0.05) < 4.5) weak.push([node.className, node.textContent.slice(0, 30), (a + 0.05) / (b + 0.05)]); } \
                     return weak",
                )
                .await;
            assert_eq!(weak, json!([]), "{theme} {view}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tiles_of_numbers_leave_no_hole_in_their_frame() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.sign_in(&alice.key).await;
    for view in ["overview", "market"] {
        stage.view(view).await;
        stage
            .browser
            .eventually("document.querySelector('.tiles .tile')")
            .await;
        for width in [390, 1120, 1280] {
            stage.set_screen(width, 800).await;
            let hole = stage
                .browser
                .run(
                    "const holes = [...document.querySelectorAll('.tiles')].map((frame) => \
                       frame.getBoundingClientRect().right - frame.lastElementChild.getBoundingClientRect().right); \
                     return Math.max(...holes)",
                )
                .await;
            assert!(
                hole.as_f64().unwrap() < 3.0,
                "{view} at {width}: {hole} pixels"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_phone_an_entry_of_the_activity_has_a_line_for_its_text() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, _bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    alice
        .send_expecting("bob", "Shall we meet on Thursday at the station?", "queued")
        .await;
    stage.sign_in(&alice.key).await;
    for (width, expected_share) in [(1280, 0.5), (390, 0.75)] {
        stage.set_screen(width, 844).await;
        stage.view("overview").await;
        stage.view("activity").await;
        let share = "document.querySelector('.rows .row:not([hidden]) .cut')?.offsetWidth / \
             document.querySelector('.rows').clientWidth";
        stage
            .browser
            .eventually(&format!("{share} > {expected_share}"))
            .await;
    }
}
