//! The market as a person uses it: hire with a form, answer, approve, cancel, claim, offer.

use crate::stage::{Stage, offer_skill};
use crate::support::actors::Agent;
use serde_json::{Value, json};

/// Offers a skill whose input has a field of every kind.
async fn offer_translation(agent: &Agent) {
    let offer = json!({"cost_per_call": 0.10, "description": "Translates a text",
        "input_schema": {"type": "object", "required": ["text", "to"], "properties": {
            "text": {"type": "string", "description": "What to translate"},
            "to": {"enum": ["de", "fr"]}, "formal": {"type": "boolean"}, "copies": {"type": "integer"},
            "style": {"type": "object", "properties": {"tone": {"type": "string", "minLength": 3}}},
            "tags": {"type": "array", "items": {"type": "string"}}}},
        "output_schema": {"text": "string"}});
    offer_skill(agent, "translate", &offer).await;
}

async fn only_job(agent: &Agent) -> Value {
    agent.get("/jobs").await.json()["jobs"][0].clone()
}

async fn read_job(agent: &Agent, id: &str) -> Value {
    agent.get(&format!("/jobs/{id}")).await.json()
}

impl Stage {
    async fn choose(&self, css: &str, value: &str) {
        let script = format!(
            "const field = document.querySelector({}); field.value = {}; field.dispatchEvent(new Event('input', {{bubbles: true}}))",
            json!(css),
            json!(value)
        );
        self.browser.run(&script).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skill_is_hired_with_a_form_made_from_its_schema() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    offer_translation(&bob).await;
    stage.sign_in(&alice.key).await;
    stage.view("market").await;
    stage
        .browser
        .click("a[href='#/market/skill/translate']")
        .await;
    for text in ["Translates a text", "from 0.10", "score 50.0"] {
        stage.browser.shows(text).await;
    }
    stage
        .browser
        .write("[data-path='.text']", "guten Tag")
        .await;
    stage.choose("[data-path='.to']", "1").await;
    stage.choose("[data-path='.formal']", "true").await;
    stage.browser.write("[data-path='.copies']", "2").await;
    stage.browser.write("[data-path='.style.tone']", "a").await;
    // What the browser can tell by itself is not sent.
    stage.browser.write("[data-path='.tags']", "[\"x\"").await;
    stage.browser.click("[data-form=hire] .first").await;
    stage.browser.shows("This is not valid JSON.").await;
    stage.browser.write("[data-path='.tags']", "]").await;
    stage.browser.click("[data-form=hire] .first").await;
    // The hub names the inner field, and the message is shown there.
    stage
        .browser
        .eventually(
            "document.querySelector(\"[data-path='.style.tone']\").parentElement.querySelector('.wrong').textContent.includes('shorter than 3')",
        )
        .await;
    assert_eq!(only_job(&alice).await, Value::Null, "nothing was held");
    // Nothing typed is lost, not even by looking elsewhere.
    stage.view("agents").await;
    stage.view("market/skill/translate").await;
    stage
        .browser
        .eventually("document.querySelector(\"[data-path='.text']\")?.value === 'guten Tag'")
        .await;
    stage.browser.write("[data-path='.style.tone']", "bc").await;
    stage.choose("#hire-budget", "0.05").await;
    stage.browser.click("[data-form=hire] .first").await;
    stage
        .browser
        .eventually("document.querySelector('#hire-budget').parentElement.querySelector('.wrong').textContent.includes('0.10')")
        .await;
    stage.choose("#hire-budget", "0.25").await;
    stage.browser.click("[data-form=hire] .first").await;
    stage.browser.shows("handed to bob@chorus").await;
    let job = only_job(&bob).await;
    let input = json!({"text": "guten Tag", "to": "fr", "formal": true, "copies": 2, "style": {"tone": "abc"}, "tags": ["x"]});
    assert_eq!(job["input_data"], input, "{job}");
    assert_eq!(job["budget"], 0.25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_and_a_job_is_cancelled_by_a_second_click() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    offer_translation(&bob).await;
    let request =
        json!({"skill_name": "translate", "input_data": {"text": "x", "to": "de"}, "budget": 0.5});
    let id = alice.post("/jobs", &request).await.json()["job_id"].clone();
    let id = id.as_str().unwrap();
    for report in [
        json!({"status": "PENDING", "progress": "half of it"}),
        json!({"status": "PENDING", "question": "Which dialect?"}),
    ] {
        bob.post(&format!("/jobs/{id}/result"), &report).await;
    }
    stage.sign_in(&alice.key).await;
    stage.view(&format!("market/{id}")).await;
    stage.browser.shows("half of it").await;
    stage.browser.shows("The worker asks").await;
    stage
        .browser
        .write("[data-form=answer] textarea", "Bavarian")
        .await;
    stage.browser.click("[data-form=answer] .first").await;
    stage.browser.shows("answer · ").await;
    assert_eq!(read_job(&bob, id).await["answer"], "Bavarian");
    // A double click only asks.
    let double_click =
        "const button = document.querySelector('[data-do=cancel]'); button.click(); button.click()";
    stage.browser.run(double_click).await;
    stage.browser.shows("Really cancel it?").await;
    assert_eq!(read_job(&alice, id).await["state"], "dispatched");
    // A second click within a second is part of a double click.
    stage
        .browser
        .run_async("setTimeout(arguments[0], 1_100)")
        .await;
    stage.browser.click("[data-do=cancel]").await;
    stage
        .browser
        .eventually("document.querySelector('h1 .state')?.textContent === 'cancelled'")
        .await;
    assert_eq!(read_job(&alice, id).await["state"], "cancelled");
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_claims_a_job_delivers_it_and_the_requester_approves() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&bob.key).await;
    // Bob offers the skill on the page.
    stage.view("market/offer").await;
    stage
        .browser
        .write("[data-form=offer] [data-path='.skill_name']", "translate")
        .await;
    stage
        .browser
        .write("[data-form=offer] [data-path='.cost_per_call']", "0.1")
        .await;
    stage
        .browser
        .write(
            "[data-form=offer] [data-path='.output_schema']",
            "{\"text\": \"string\"}",
        )
        .await;
    stage.browser.click("[data-form=offer] .first").await;
    stage.browser.shows("You offer this skill.").await;
    let request = json!({"skill_name": "translate", "input_data": {"text": "guten Tag"}, "budget": 0.5,
        "board": true, "approve_within_ms": 600_000});
    let id = alice.post("/jobs", &request).await.json()["job_id"].clone();
    let id = id.as_str().unwrap();
    stage.view("market").await;
    stage.browser.shows("for alice@chorus, up to 0.50").await;
    stage.browser.click("[data-do=claim]").await;
    stage.browser.shows("Your work").await;
    stage
        .browser
        .write("[data-form=report] textarea", "reading it")
        .await;
    stage.browser.click("[data-form=report] button").await;
    stage.browser.shows("reading it").await;
    stage
        .browser
        .write("[data-form=deliver] [data-path='.text']", "good day")
        .await;
    stage.browser.click("[data-form=deliver] .first").await;
    stage
        .browser
        .eventually("document.querySelector('h1 .state')?.textContent === 'delivered'")
        .await;
    stage.sign_in_again(&alice.key).await;
    stage.view(&format!("market/{id}")).await;
    stage.browser.shows("good day").await;
    stage
        .browser
        .click("[data-form=approval] button[value=approve]")
        .await;
    stage
        .browser
        .eventually("document.querySelector('h1 .state')?.textContent === 'done'")
        .await;
    // What it cost is told to the one that paid.
    stage.view("market").await;
    stage
        .browser
        .eventually("[...document.querySelectorAll('.tile')].some((tile) => /Paid by you/.test(tile.textContent) && /0\\.10/.test(tile.textContent))")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_shows_its_record_until_it_is_withdrawn() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    offer_translation(&bob).await;
    let _listening = bob.inbox().await;
    for result in [
        json!({"status": "SUCCESS", "output_data": {"text": "good day"}}),
        json!({"status": "FAILURE", "error_message": "no such dialect"}),
    ] {
        let request = json!({"skill_name": "translate", "input_data": {"text": "x", "to": "de"}, "budget": 0.5});
        let id = alice.post("/jobs", &request).await.json()["job_id"].clone();
        let path = format!("/jobs/{}/result", id.as_str().unwrap());
        let answer = bob.post(&path, &result).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    stage.sign_in(&bob.key).await;
    stage.view("market").await;
    let earned = "[...document.querySelectorAll('.tile')].some((tile) => /^Earned/.test(tile.textContent) && /0\\.10/.test(tile.textContent))";
    stage.browser.eventually(earned).await;
    // The chart goes up with the job that was done, and down with the one that failed.
    stage.view("agents/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelector('.chart.reputation .edge')?.getAttribute('d')")
        .await;
    let chart = "const chart = document.querySelector('.chart.reputation'); \
         const score = chart.parentElement.querySelector('.big b').textContent; \
         const heights = [...chart.querySelector('.edge').getAttribute('d').matchAll(/ ([0-9.]+)/g)].map((found) => Number(found[1])); \
         return [heights.length, heights[0] < heights[1], chart.getAttribute('aria-label').endsWith(score)]";
    assert_eq!(stage.browser.run(chart).await, json!([2, true, true]));
    stage.view("market/skill/translate").await;
    stage
        .browser
        .shows("1 done, 1 failed · 1 hirers · earned 0.10")
        .await;
    stage.browser.click("[data-do=withdraw]").await;
    stage
        .browser
        .eventually("location.hash === '#/market'")
        .await;
    let offered = alice.get("/skills").await.json();
    assert_eq!(offered["skills"], json!([]), "{offered}");
    stage.is_clean().await;
}
