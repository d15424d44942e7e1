//! Work that was handed over is taken up or closed on the page, once, and the outcome stays.

use crate::stage::{Stage, said};
use crate::support::actors::{Agent, Answer};
use serde_json::{Value, json};

/// Hands work over to every session of the agent's own handle; returns the id of the frame.
async fn hand_over(agent: &Agent, body: &str) -> String {
    let note = json!({"previous_session_id": "s1", "handover_body": body, "pointer_refs": ["docs/plan.md"]});
    let frame = said(agent, "agent_handover", &note);
    agent.submit(&agent.handle(), &frame).await;
    frame["frame_id"].as_str().unwrap().to_owned()
}

async fn list_open_ids(agent: &Agent) -> Vec<Value> {
    let open = agent.get("/handles/~alice/open").await.json();
    let items = open["items"].as_array().unwrap().iter();
    items.map(|item| item["frame_id"].clone()).collect()
}

async fn take_elsewhere(agent: &Agent, id: &str) {
    let take = agent
        .request("POST", &format!("/handles/~alice/open/{id}/take"))
        .header("x-chorus-instrument", "cc-tests")
        .header("x-chorus-session", "s9");
    assert_eq!(Answer::of(take).await.status, 200);
}

fn card(id: &str) -> String {
    format!("document.querySelector('[data-handover=\"{id}\"]')")
}

fn says(id: &str, text: &str) -> String {
    format!("{}?.innerText.includes({})", card(id), json!(text))
}

/// Double-clicks where the pointer is, on whatever is under it by then; counts in `window.ended` what is asked of the hub.
async fn double_click_take(stage: &Stage, id: &str) {
    stage
        .browser
        .run(
            "window.ended = 0; const ask = window.fetch; window.fetch = (...of) => { \
             if (/\\/open\\/[^/]+(\\/take)?$/.test(String(of[0]))) window.ended += 1; return ask(...of); }",
        )
        .await;
    let double_click = format!(
        "const button = {}.querySelector('[data-do=handover-taken]'); button.scrollIntoView({{block: 'center'}}); \
         const box = button.getBoundingClientRect(); button.click(); \
         setTimeout(() => {{ document.elementFromPoint(box.x + 5, box.y + 5).click(); \
           document.querySelector('[data-do=handover-taken]')?.click(); arguments[0](); }}, 150)",
        card(id)
    );
    stage.browser.run_async(&double_click).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handover_is_taken_up_once_and_the_outcome_stays() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let older = hand_over(&alice, "The cart still fails.").await;
    let newer = hand_over(&alice, "The **check** is moved.").await;
    let mut told = alice
        .stream("/handles/~alice/stream?instrument=cc-tests&session=s2&filter=kind:agent_handover")
        .await;
    told.next("connected").await;
    told.next("open-items").await;
    stage.sign_in(&alice.key).await;
    stage.browser.shows("Work handed over").await;
    stage.view("sessions").await;
    stage
        .browser
        .eventually("document.querySelectorAll('[data-do=handover-taken]').length === 2")
        .await;
    stage
        .browser
        .eventually(&says(&newer, "docs/plan.md"))
        .await;
    double_click_take(&stage, &newer).await;
    stage
        .browser
        .eventually(&says(&newer, "You took it up at "))
        .await;
    assert_eq!(stage.browser.run("return window.ended").await, 1);
    assert_eq!(list_open_ids(&alice).await, [json!(older)]);
    let frame = told.next("agent_handover").await.data;
    assert_eq!(
        frame["payload"]["pointer_refs"],
        json!(["docs/plan.md", format!("frame:{newer}")])
    );
    let session = stage
        .browser
        .run("return sessionStorage.getItem('chorus.session')")
        .await;
    assert_eq!(frame["payload"]["next_session_id"], session);
    // It stays in its place, also after another view, and the other one can still be ended.
    stage.view("overview").await;
    stage.view("sessions").await;
    stage
        .browser
        .eventually(&says(&newer, "You took it up at "))
        .await;
    stage
        .browser
        .eventually(&says(&older, "The cart still"))
        .await;
    let gap = "setTimeout(arguments[0], 1100)";
    stage.browser.run_async(gap).await;
    stage
        .browser
        .click(&format!(
            "[data-handover='{older}'] [data-do=handover-closed]"
        ))
        .await;
    stage
        .browser
        .eventually(&says(&older, "You closed it at "))
        .await;
    stage.browser.shows("Nothing is handed over.").await;
    assert!(list_open_ids(&alice).await.is_empty());
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handover_that_another_session_was_first_to_take_says_so() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let announced = hand_over(&alice, "The cart still fails.").await;
    let silent = hand_over(&alice, "The check is moved.").await;
    stage.sign_in(&alice.key).await;
    stage.view("sessions").await;
    stage
        .browser
        .eventually("document.querySelectorAll('[data-do=handover-taken]').length === 2")
        .await;
    take_elsewhere(&alice, &announced).await;
    let note = json!({"previous_session_id": "s1", "next_session_id": "s9", "handover_body": "The cart still fails.",
        "pointer_refs": [format!("frame:{announced}")]});
    let frame = said(&alice, "agent_handover", &note);
    alice.submit("~alice", &frame).await;
    stage
        .browser
        .eventually(&says(&announced, "Session s9 took it up."))
        .await;
    // The page does not know yet that the other one is taken, and the hub refuses the click.
    stage
        .browser
        .run(
            "const ask = window.fetch; window.fetch = (...of) => \
             String(of[0]).endsWith('/open') ? Promise.reject(new Error('late')) : ask(...of)",
        )
        .await;
    take_elsewhere(&alice, &silent).await;
    stage
        .browser
        .click(&format!(
            "[data-handover='{silent}'] [data-do=handover-taken]"
        ))
        .await;
    stage
        .browser
        .eventually(&says(&silent, "it was taken up by ~alice cc-tests@s9"))
        .await;
}
