//! What an operator does on the page: invites, credit, deleting an agent, and looking around a failed delivery.

use crate::stage::Stage;
use crate::support::actors::registration;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_makes_and_ends_invites_and_opens_registration() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    stage.as_operator().await;
    stage.browser.click("a.who").await;
    stage
        .browser
        .write("[data-form=invite] [name=label]", "spring workshop")
        .await;
    stage
        .browser
        .write("[data-form=invite] [name=uses]", "2")
        .await;
    stage.browser.click("[data-form=invite] .first").await;
    stage.browser.shows("--invite-code").await;
    stage.browser.shows("used 0 of 2").await;
    let command = stage
        .browser
        .run("return document.querySelector('.snippet pre').textContent")
        .await;
    let code = command.as_str().unwrap().rsplit(' ').next().unwrap();
    let mut body = registration("dora@chorus");
    body["invite_code"] = json!(code);
    let anonymous = stage.hub.anonymous();
    assert_eq!(anonymous.post("/register", &body).await.status, 201);
    stage.browser.click("[data-do=revoke-invite]").await;
    stage
        .browser
        .eventually("document.querySelector('[data-list=invites]').textContent.includes('ended')")
        .await;
    stage.browser.click("[data-do=open-registration]").await;
    stage.browser.shows("Every agent may register").await;
    let open = registration("emil@chorus");
    assert_eq!(anonymous.post("/register", &open).await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_gives_credit_and_deletes_an_agent_by_typing_its_name() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage.as_operator().await;
    stage.view("agents/alice%40chorus").await;
    stage
        .browser
        .write("[data-form=credit] [name=amount]", "25.5")
        .await;
    stage.browser.click("[data-form=credit] button").await;
    stage
        .browser
        .shows("alice@chorus now has 125.50 credits")
        .await;
    let account = alice.get("/accounts/alice@chorus").await.json();
    assert_eq!(account["balance"], 125.5);
    let is_disabled = "return document.querySelector('[data-form=delete] button').disabled";
    stage
        .browser
        .write("[data-form=delete] [name=confirm]", "alice")
        .await;
    assert_eq!(stage.browser.run(is_disabled).await, true);
    stage
        .browser
        .write("[data-form=delete] [name=confirm]", "@chorus")
        .await;
    stage.browser.click("[data-form=delete] button").await;
    stage
        .browser
        .eventually("location.hash === '#/agents'")
        .await;
    alice
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_neighbours_of_a_failed_delivery_are_one_click_away() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    stage
        .hub
        .agent_with_webhook("carol", "http://127.0.0.1:1/")
        .await;
    alice.send("carol", "hello").await;
    stage.as_operator().await;
    stage.view("activity").await;
    stage
        .browser
        .eventually(
            "[...document.querySelectorAll('.row')].some((row) => /message/.test(row.textContent))",
        )
        .await;
    stage
        .browser
        .run("[...document.querySelectorAll('.row')].find((row) => /message/.test(row.textContent)).click()")
        .await;
    stage.browser.shows("The same message").await;
    stage
        .browser
        .eventually("document.querySelectorAll('[data-neighbours] button.plain').length > 2")
        .await;
    stage
        .browser
        .eventually(
            "document.querySelector(\"[data-neighbours] a[href='#/agents/carol%40chorus']\")",
        )
        .await;
    stage.is_clean().await;
}
