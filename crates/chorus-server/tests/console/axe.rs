//! axe-core finds nothing to object to on any view: empty and filled, light and dark, on a desk and on a phone.
//!
//! The checker comes from npm with the other hosts and is run by the browser's driver, so it is no part of the page.

use crate::stage::{ESCAPE, Stage, VIEWS, moment, offer_skill, said};
use crate::support::actors::Agent;
use crate::support::actors::channel::{add_agent, create_channel, invite_agent, post_message};
use serde_json::json;
use std::path::Path;

/// What axe-core reports beyond its default: the smallest size of a target is a rule of WCAG 2.2 that it leaves off.
const RUN_AXE: &str = "const done = arguments[0]; \
     axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}).then( \
       ({violations}) => done(violations.flatMap(({id, impact, nodes}) => nodes.map((node) => \
         `${id} (${impact}): ${node.html.slice(0, 160)} ${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''}`))), \
       (error) => done([`axe itself: ${error}`]))";

/// A signed-in or signed-out page under the eyes of axe-core.
struct Inspection {
    stage: Stage,
    script: String,
    findings: Vec<String>,
}

impl Inspection {
    /// `None` where there is no browser, or where axe-core was not fetched.
    async fn open() -> Option<Self> {
        let Some(folder) =
            std::env::var_os("CHORUS_TEST_HOSTS").filter(|folder| !folder.is_empty())
        else {
            println!("skipped: axe-core is not here; ./test --hosts fetches it");
            return None;
        };
        let file = Path::new(&folder).join("node_modules/axe-core/axe.min.js");
        let script = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let stage = Stage::open().await?;
        Some(Self {
            stage,
            script,
            findings: Vec::new(),
        })
    }

    /// Looks at what is on the page now, in both themes and at both widths.
    async fn look(&mut self, place: &str) {
        let browser = &self.stage.browser;
        if browser.run("return typeof axe").await == "undefined" {
            browser.run(&self.script).await;
        }
        for (width, height) in [(1280, 800), (390, 844)] {
            self.stage.set_screen(width, height).await;
            for theme in ["light", "dark"] {
                let paint = format!(
                    "document.documentElement.dataset.theme = '{theme}'; \
                     requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
                );
                browser.run_async(&paint).await;
                for finding in browser.run_async(RUN_AXE).await.as_array().unwrap() {
                    let finding = finding.as_str().unwrap();
                    self.findings
                        .push(format!("{place}, {theme}, {width}: {finding}"));
                }
            }
        }
    }

    /// Opens a view, waits until `sign` is true, and looks at it.
    async fn look_at(&mut self, view: &str, sign: &str) {
        self.stage.view(view).await;
        self.stage.browser.eventually(sign).await;
        self.look(view).await;
    }

    fn has_no_findings(&self) {
        assert!(
            self.findings.is_empty(),
            "{} findings:\n{}",
            self.findings.len(),
            self.findings.join("\n")
        );
    }
}

/// What a hub looks like after some days: mail, a channel with work in it, frames, a decision, a claim, and jobs.
struct FilledHub {
    alice: Agent,
    room: String,
    job: String,
}

async fn fill_hub(stage: &Stage) -> FilledHub {
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let long_line = "0123456789".repeat(40);
    let text = format!(
        "# Plan\n**First** `cargo test`, then [the page](https://a.example/).\n\n> quoted\n\n- one\n- two\n\n\
         ```sh\nls {long_line}\n```\n\n| a | b |\n|---|---|\n| {long_line} | 2 |"
    );
    for number in 0..3 {
        let mut message = bob.message("alice", &text);
        message["envelope"]["cultural_context"] = json!("Direct wording is normal here.");
        bob.post("/messages", &message).await.data(202);
        alice
            .send_expecting("bob", &format!("Answer {number}"), "queued")
            .await;
    }
    bob.send_expecting("alice", &"a long text ".repeat(300), "queued")
        .await;
    let card = json!({"endpoint": "http://127.0.0.1:9/receive"});
    stage.hub.agent_with("dave@chorus", &card).await;
    alice.send_expecting("dave", "lost", "failed").await;
    let room = fill_channel(stage, &alice, &bob).await;
    let other = create_channel(&bob, "invited").await;
    invite_agent(&bob, &other, &alice).await;
    for (kind, payload) in [
        ("agent_binding_moment", moment()),
        ("agent_advisory", json!({"advisory_text": "reading"})),
        (
            "agent_handover",
            json!({"previous_session_id": "s1", "handover_body": "The cart still **fails**.", "pointer_refs": ["docs/plan.md"]}),
        ),
        (
            "agent_lock_request",
            json!({"resource": "src/auth.rs", "ttl_ms": 600_000, "intent": "moving",
            "lease_id": "853b9f5a-fa57-4103-9d42-eb724446455a"}),
        ),
    ] {
        alice.submit("~alice", &said(&alice, kind, &payload)).await;
    }
    let job = fill_market(&alice, &bob).await;
    FilledHub { alice, room, job }
}

/// A channel with messages of both, a tool call with its result, a status and an error.
async fn fill_channel(stage: &Stage, alice: &Agent, bob: &Agent) -> String {
    let room = create_channel(alice, "workshop").await;
    add_agent(alice, &room, bob).await;
    let mut inbox = bob.inbox().await;
    post_message(alice, &room, "@bob what is the weather?").await;
    let delivery = inbox.next("channel").await.data;
    for event in [
        json!({"type": "status", "status": "looking it up"}),
        json!({"type": "tool_call", "name": "web_search", "args": {"query": "oslo"}, "id": "tc_1"}),
        json!({"type": "tool_result", "id": "tc_1", "content": "3 degrees\n".repeat(60)}),
        json!({"type": "error", "message": "The second source is away.", "code": "SOURCE"}),
        json!({"type": "message", "content": "Cold, `bring` a coat."}),
    ] {
        let posted = stage
            .hub
            .http
            .post(delivery["callback"].as_str().unwrap())
            .header("content-type", "application/json")
            .body(event.to_string());
        assert_eq!(posted.send().await.unwrap().status(), 200);
    }
    room
}

/// A skill, a job that asks its requester a question, a finished one, and one on the board; returns the first.
async fn fill_market(alice: &Agent, bob: &Agent) -> String {
    let offer = json!({"cost_per_call": 0.10, "description": "Translates a text",
        "input_schema": {"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string", "description": "What to translate"}, "to": {"enum": ["de", "fr"]},
            "formal": {"type": "boolean"}, "style": {"type": "object", "properties": {"tone": {"type": "string"}}},
            "tags": {"type": "array", "items": {"type": "string"}}}}, "output_schema": {"text": "string"}});
    offer_skill(bob, "translate", &offer).await;
    let mut ids = Vec::new();
    for board in [false, false, true] {
        let request = json!({"skill_name": "translate", "budget": 0.5, "input_data": {"text": "line\n".repeat(90)}, "board": board});
        let job = alice.post("/jobs", &request).await.json();
        ids.push(job["job_id"].as_str().unwrap().to_owned());
    }
    let done = json!({"status": "SUCCESS", "output_data": {"text": "y"}, "execution_time_ms": 8});
    bob.post(&format!("/jobs/{}/result", ids[1]), &done).await;
    let question = json!({"status": "PENDING", "question": "Which dialect?"});
    bob.post(&format!("/jobs/{}/result", ids[0]), &question)
        .await;
    // Work for alice: on the board, and handed to her.
    offer_skill(alice, "summarise", &json!({"cost_per_call": 0.05})).await;
    for board in [true, false] {
        let request =
            json!({"skill_name": "summarise", "budget": 0.3, "input_data": {}, "board": board});
        assert_eq!(bob.post("/jobs", &request).await.status, 202);
    }
    ids.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_on_an_empty_hub_and_before_the_sign_in() {
    let Some(mut inspection) = Inspection::open().await else {
        return;
    };
    let alice = inspection.stage.hub.agent("alice").await;
    for (path, sign) in [
        ("/console", "form.signin"),
        ("/docs", ".operation"),
        ("/invite/alice", ".snippet button"),
    ] {
        inspection.stage.goto(path).await;
        let browser = &inspection.stage.browser;
        browser
            .eventually(&format!("document.querySelector('{sign}')"))
            .await;
        // What is folded away is part of the page too.
        browser
            .run(
                "document.querySelectorAll('details').forEach((one, at) => { one.open = at < 5; })",
            )
            .await;
        inspection.look(path).await;
    }
    inspection.stage.sign_in(&alice.key).await;
    let empty = "document.querySelector('main .snippet, main .calm:not([hidden])')";
    for view in VIEWS {
        inspection.look_at(view, empty).await;
    }
    for view in ["market/offer", "access"] {
        inspection
            .look_at(view, "document.querySelector('main form')")
            .await;
    }
    inspection
        .stage
        .sign_in_again(crate::support::hub::OPERATOR_KEY)
        .await;
    for view in VIEWS.into_iter().chain(["operator"]) {
        inspection.look_at(view, "true").await;
    }
    inspection.has_no_findings();
}

/// The views of a filled hub with what shows that their content is there.
fn filled_views(filled: &FilledHub) -> Vec<(String, &'static str)> {
    let one = |view: &str, sign| (view.to_owned(), sign);
    vec![
        one("overview", "document.querySelector('.decision .option')"),
        one(
            "agents",
            "document.querySelector('.rows .row:not([hidden])')",
        ),
        one(
            "agents/bob%40chorus",
            "document.querySelector('.person h2')",
        ),
        one("conversations", "document.querySelector('.picks a')"),
        one(
            "conversations/bob%40chorus",
            "document.querySelectorAll('.bubble').length > 5",
        ),
        one("channels", "document.querySelector('.picks a')"),
        one(
            filled.room.trim_start_matches('/'),
            "document.querySelector('[data-call]')",
        ),
        one("sessions", "document.querySelector('.locks li')"),
        one("market", "document.querySelector('.board-job')"),
        one(
            "market/skill/translate",
            "document.querySelector(\"[data-path='.text']\")",
        ),
        one(
            &format!("market/{}", filled.job),
            "document.querySelector('.timeline li')",
        ),
        one(
            "market/offer",
            "document.querySelector('[data-form=offer]')",
        ),
        one("activity", "document.querySelector('.rows')"),
        one("access", "document.querySelector('form[data-form=key]')"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_on_a_filled_hub_as_an_agent() {
    let Some(mut inspection) = Inspection::open().await else {
        return;
    };
    let filled = fill_hub(&inspection.stage).await;
    inspection.stage.sign_in(&filled.alice.key).await;
    for (view, sign) in filled_views(&filled) {
        inspection.look_at(&view, sign).await;
    }
    // What opens on top of a view or inside it.
    for (view, opener, sign) in [
        ("conversations", "[data-do=new-message]", "#new-to"),
        (
            "channels",
            "[data-do=new-channel]",
            "[data-form=new-channel]:not([hidden])",
        ),
        (
            filled.room.trim_start_matches('/'),
            "[data-tools] summary",
            "[data-form=member]",
        ),
        (
            filled.room.trim_start_matches('/'),
            "[data-call] summary",
            "[data-call][open]",
        ),
        ("sessions", ".frame-list .row", ".entry:not([hidden])"),
        (
            "conversations/bob%40chorus",
            ".bubble.mine .steps summary",
            ".steps[open] li",
        ),
        ("agents", "[aria-label=Keyboard]", "dialog[open]"),
    ] {
        inspection.stage.view(view).await;
        inspection.stage.set_screen(1280, 800).await;
        let browser = &inspection.stage.browser;
        browser.click(opener).await;
        browser
            .eventually(&format!("document.querySelector(\"{sign}\")"))
            .await;
        inspection.look(&format!("{view} with {sign}")).await;
        inspection.stage.browser.press(ESCAPE).await;
    }
    inspection.has_no_findings();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_on_a_filled_hub_as_an_operator() {
    let Some(mut inspection) = Inspection::open().await else {
        return;
    };
    let filled = fill_hub(&inspection.stage).await;
    let invite = json!({"label": "workshop", "max_uses": 2});
    inspection.stage.hub.operator().invite(&invite).await;
    inspection.stage.as_operator().await;
    for (view, sign) in [
        ("overview", "document.querySelector('[data-need=failed]')"),
        (
            "agents",
            "document.querySelector('.rows .row:not([hidden])')",
        ),
        (
            "agents/bob%40chorus",
            "document.querySelector('[data-form=credit]')",
        ),
        ("conversations", "document.querySelector('.picks .pick')"),
        ("channels", "document.querySelector('.picks a')"),
        (
            filled.room.trim_start_matches('/'),
            "document.querySelector('[data-call]')",
        ),
        ("sessions", "true"),
        ("market", "document.querySelector('table')"),
        (
            "activity",
            "document.querySelector('.rows .row:not([hidden])')",
        ),
        (
            "operator",
            "document.querySelector('[data-list=invites] *')",
        ),
    ] {
        inspection.look_at(view, sign).await;
    }
    inspection.stage.view("activity").await;
    inspection.stage.browser.click(".rows .row").await;
    inspection
        .stage
        .browser
        .eventually("document.querySelector('[data-neighbours]')")
        .await;
    inspection.look("an entry of the activity").await;
    inspection.has_no_findings();
}
