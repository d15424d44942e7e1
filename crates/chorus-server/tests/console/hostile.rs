//! Hostile names and messages are shown on the page as text, never as markup (failure 7).

use crate::stage::{Stage, VIEWS, said};
use crate::support::actors::Agent;
use serde_json::{Value, json};

/// Would set `window.hit` if any of it were taken for markup or script, and fetch from elsewhere if it were an image.
const EVIL: &str = "<img src=x onerror=\"window.hit=1\"><script>window.hit=2</script><svg onload=\"window.hit=3\">\
    <a href=\"javascript:window.hit=4\">x</a><img src=\"https://elsewhere.example/pixel.png\">\u{202e}gnp.exe\u{202c}";

fn evil_moment() -> Value {
    let option = json!({"label": EVIL.chars().take(200).collect::<String>(), "reasoning": EVIL});
    json!({"synopsis": EVIL, "findings": [EVIL], "recommendations": [EVIL], "offer": EVIL,
        "question": {"stem": EVIL, "recommended_idx": 0, "options": [option, option]}})
}

/// An agent that means harm with everything it may fill in, and a victim that looks at it.
async fn scene(stage: &Stage) -> (Agent, Agent) {
    let victim = stage.hub.agent("victim").await;
    let card = json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"], "about": EVIL,
        "<b>field</b>": {"deep": EVIL}});
    let skill = json!({"skill_name": "<u>skill</u>", "cost_per_call": 0.10, "description": EVIL});
    let more = json!({"agent_card": card, "agent_name": EVIL, "owner_id": "owner<i>x</i>", "skills": [skill]});
    let mallory = stage.hub.agent_with("mallory@chorus", &more).await;
    let mut message = mallory.message("victim", EVIL);
    message["envelope"]["cultural_context"] = json!(EVIL);
    message["envelope"]["conversation_id"] = json!("<b onclick=hit>talk</b>");
    mallory.post("/messages", &message).await.data(202);
    let job = json!({"skill_name": "<u>skill</u>", "budget": 0.20, "input_data": {"x": EVIL}});
    let job = victim.post("/jobs", &job).await;
    assert_eq!(job.status, 202, "{job:?}");
    let job = job.json()["job_id"].as_str().unwrap().to_owned();
    let failure = json!({"status": "FAILURE", "error_message": EVIL, "output_data": {"x": EVIL}});
    assert_eq!(
        mallory
            .post(&format!("/jobs/{job}/result"), &failure)
            .await
            .status,
        200
    );
    for (kind, payload) in [
        ("agent_binding_moment", evil_moment()),
        ("agent_advisory", json!({"advisory_text": EVIL})),
    ] {
        let frame = said(&victim, kind, &payload);
        victim
            .submit("~victim", &frame)
            .await
            .recipient_count(frame["frame_id"].as_str().unwrap());
    }
    let room = victim
        .post(
            "/channels",
            &json!({"name": "<h1>room</h1>", "context": EVIL}),
        )
        .await
        .data(201);
    let room = room["id"].as_str().unwrap().to_owned();
    victim
        .post(
            &format!("/channels/{room}/messages"),
            &json!({ "content": EVIL }),
        )
        .await
        .data(201);
    (victim, mallory)
}

/// Nothing of it became part of the page.
async fn is_text(stage: &Stage, place: &str) {
    let found = stage
        .browser
        .run(
            "return {hit: window.hit ?? null, \
             images: document.querySelectorAll('img:not([src=\"/console/icon.svg\"])').length, \
             scripts: document.querySelectorAll('body script').length, \
             inline: [...document.querySelectorAll('*')].filter((one) => [...one.attributes].some((a) => a.name.startsWith('on'))).length, \
             links: [...document.querySelectorAll('a')].filter((a) => !/^https?:$/.test(a.protocol)).length, \
             open: [...document.querySelectorAll('a[target]')].filter((a) => !a.rel.includes('noopener')).length}",
        )
        .await;
    assert_eq!(
        found,
        json!({"hit": null, "images": 0, "scripts": 0, "inline": 0, "links": 0, "open": 0}),
        "{place}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_an_agent_says_or_calls_itself_becomes_markup() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (victim, _mallory) = scene(&stage).await;
    let room = victim.get("/channels").await.data(200)[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let job = victim.get("/jobs").await.json()["jobs"][0]["job_id"]
        .as_str()
        .unwrap()
        .to_owned();
    stage.sign_in(&victim.key).await;
    let places = VIEWS.map(str::to_owned).into_iter().chain([
        "agents/mallory%40chorus".into(),
        "conversations/mallory%40chorus/%3Cb%20onclick%3Dhit%3Etalk%3C%2Fb%3E".into(),
        format!("channels/{room}"),
        format!("market/{job}"),
        "agents/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E".into(),
    ]);
    for place in places {
        stage.view(&place).await;
        let shows = match place.split('/').next().unwrap() {
            // It is there, letter by letter, where there is something of it to show.
            "conversations" | "sessions" => "<img src=x onerror=",
            "channels" => "<h1>room</h1>",
            "market" => "<u>skill</u>",
            "agents" if place.contains("mallory") => "<b>field</b>",
            "overview" | "agents" | "activity" => "",
            other => panic!("{other} is a new view"),
        };
        stage.browser.shows(shows).await;
        is_text(&stage, &place).await;
    }
    for url in stage.browser.requests().await {
        assert!(url.starts_with(&stage.hub.url), "{url} was asked for");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_who_looks_at_it_is_as_safe() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (_victim, _mallory) = scene(&stage).await;
    stage.as_operator().await;
    for place in VIEWS.into_iter().chain(["agents/mallory%40chorus"]) {
        stage.view(place).await;
        is_text(&stage, place).await;
    }
    stage.browser.shows("<b>field</b>").await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_http_and_https_become_links_and_they_keep_their_distance() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let text = "see https://a.example/x?y=1&z=2, http://b.example. not javascript:alert(1) data:text/html,x ftp://c.example file:///x";
    bob.send_expecting("alice", text, "queued").await;
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    // The list beside the conversation has the text too, and earlier.
    stage
        .browser
        .eventually("document.querySelectorAll('.said a').length > 0")
        .await;
    let links = stage
        .browser
        .run("return [...document.querySelectorAll('.said a')].map((a) => [a.href, a.rel, a.target])")
        .await;
    let rel = "noopener noreferrer";
    assert_eq!(
        links,
        json!([
            ["https://a.example/x?y=1&z=2", rel, "_blank"],
            ["http://b.example/", rel, "_blank"]
        ])
    );
    let whole = format!(
        "return document.querySelector('.said').textContent === {}",
        json!(text)
    );
    assert_eq!(stage.browser.run(&whole).await, true);
}

/// Markdown that would be markup in a renderer that makes markup: raw HTML, other schemes, broken and endless marks.
const EVIL_MARKDOWN: &str = "# <img src=x onerror=window.hit=1>\n\
    [click](javascript:window.hit=2) [data](data:text/html,<script>window.hit=3</script>) ![pixel](https://elsewhere.example/p.png)\n\
    [bank](https://evil.example/?x=%22onclick) <a href='javascript:window.hit=4'>x</a> **<b onclick=hit>bold</b>**\n\n\
    ```html\n<script>window.hit=5</script>\n```\n\n\
    - `<svg onload=window.hit=6>`\n\n> quoted <iframe src=x>\n\n```\nan endless fence <script>window.hit=7</script>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn markdown_becomes_a_few_kinds_of_nodes_and_never_markup() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    bob.send_expecting("alice", EVIL_MARKDOWN, "queued").await;
    // Marks without an end: the page stays responsive and every letter is there.
    let marks = ["[x](".repeat(1_200), "**a ".repeat(1_200)].concat();
    bob.send_expecting("alice", &marks, "queued").await;
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.bubble').length === 2")
        .await;
    is_text(&stage, "markdown").await;
    let found = stage
        .browser
        .run(
            "const said = document.querySelector('.said'); \
             return {tags: [...new Set([...said.querySelectorAll('*')].map((one) => one.localName))].sort(), \
               links: [...said.querySelectorAll('a')].map((a) => [a.href, a.rel]), \
               code: said.querySelector('pre code').textContent, \
               host: said.textContent.includes('bank (evil.example)'), \
               letters: document.querySelectorAll('.said')[1].textContent.length}",
        )
        .await;
    assert_eq!(
        found["tags"],
        json!([
            "a",
            "blockquote",
            "button",
            "code",
            "div",
            "li",
            "p",
            "pre",
            "span",
            "strong",
            "ul"
        ])
    );
    let rel = "noopener noreferrer";
    assert_eq!(
        found["links"],
        json!([
            ["https://elsewhere.example/p.png", rel],
            ["https://evil.example/?x=%22onclick", rel]
        ])
    );
    assert_eq!(found["code"], "<script>window.hit=5</script>");
    assert_eq!(found["host"], true);
    assert_eq!(found["letters"], marks.len());
    for url in stage.browser.requests().await {
        assert!(url.starts_with(&stage.hub.url), "{url} was asked for");
    }
}

/// What a text of one bubble looks like: the texts and alignments of its cells, or the text that stayed as it was typed.
const READ_TABLES: &str = "return [...document.querySelectorAll('.bubble .said')].map((said) => \
     said.querySelector('pre.md-table')?.textContent ?? [...said.querySelectorAll('tr')].map((row) => \
       [...row.cells].map((cell) => [cell.localName, cell.className, cell.textContent])))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simple_table_becomes_cells_and_any_other_stays_as_it_was_typed() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let simple = "| | Price | At |\n|:--|--:|:-:|\n| **tea** | 2 | `x` |\n\
         | <img src=x onerror=window.hit=1> \\| b | [x](javascript:window.hit=2) | |";
    let uneven = "| a | b |\n|---|---|\n| one cell |";
    let no_rule = "| a | b |\n| 1 | 2 |";
    let no_rows = "| a | b |\n|---|---|";
    let large = format!("| a | b |\n|---|---|\n{}", "| 1 | 2 |\n".repeat(600));
    for text in [simple, uneven, no_rule, no_rows, &large] {
        bob.send_expecting("alice", text, "queued").await;
    }
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.bubble').length === 5")
        .await;
    is_text(&stage, "tables").await;
    assert_eq!(
        stage.browser.run(READ_TABLES).await,
        json!([
            [
                [
                    ["td", "", ""],
                    ["th", "number", "Price"],
                    ["th", "md-center", "At"]
                ],
                [
                    ["td", "", "tea"],
                    ["td", "number", "2"],
                    ["td", "md-center", "x"]
                ],
                [
                    ["td", "", "<img src=x onerror=window.hit=1> | b"],
                    ["td", "number", "[x](javascript:window.hit=2)"],
                    ["td", "md-center", ""]
                ]
            ],
            uneven,
            no_rule,
            no_rows,
            large.trim_end()
        ])
    );
    let marks =
        "return [...document.querySelectorAll('td strong, td code')].map((one) => one.textContent)";
    assert_eq!(stage.browser.run(marks).await, json!(["tea", "x"]));
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn even_a_mistake_in_the_page_could_not_run_what_it_was_given() {
    // The policy: no string becomes markup or script, and nothing is fetched from elsewhere.
    let Some(stage) = Stage::open().await else {
        return;
    };
    stage.goto("/console").await;
    let tried = stage
        .browser
        .run(
            "const tried = {}; \
             try { document.body.innerHTML = '<b>x</b>'; tried.markup = 'taken'; } catch { tried.markup = 'refused'; } \
             const script = document.createElement('script'); \
             try { script.textContent = 'window.hit = 1'; document.body.append(script); } catch { } \
             tried.script = window.hit === undefined ? 'refused' : 'taken'; \
             return tried",
        )
        .await;
    assert_eq!(tried, json!({"markup": "refused", "script": "refused"}));
    let fetched = stage
        .browser
        .run_async(
            "fetch('https://elsewhere.example/').then(() => arguments[0]('taken'), () => arguments[0]('refused'))",
        )
        .await;
    assert_eq!(fetched, "refused");
    let complaints = stage.browser.complaints().await.join("\n");
    assert!(
        complaints.contains("Content Security Policy"),
        "{complaints}"
    );
}
