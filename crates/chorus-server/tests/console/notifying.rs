//! Notifications of the browser, for what comes while the page is not in sight.

use crate::stage::{Stage, moment, said};
use serde_json::json;

/// A browser without a screen shows no notification, so this notes what the page asks it to show.
const RECORD_NOTIFICATIONS: &str = "window.shown = []; \
     window.Notification = class extends EventTarget { \
       static permission = 'default'; \
       static async requestPermission() { return (this.permission = 'granted'); } \
       constructor(title, { body, tag }) { super(); window.shown.push({ title, body, tag, notification: this }); } \
       close() {} }";
/// As when another tab is in front.
const HIDE_PAGE: &str =
    "Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_and_a_message_are_notified_once_while_the_page_is_out_of_sight() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.browser.run(RECORD_NOTIFICATIONS).await;
    let ask = said(&alice, "agent_binding_moment", &moment());
    let shown = "JSON.stringify(window.shown.map(({ title, body, tag }) => [title, body, tag]))";
    let are_shown =
        |expected: serde_json::Value| format!("{shown} === {}", json!(expected.to_string()));
    // Nothing is shown before the person asks for it, and nothing while the page is in sight.
    stage.browser.run(HIDE_PAGE).await;
    bob.send_expecting("alice", "unasked", "delivered_sse")
        .await;
    stage
        .browser
        .eventually("document.title === '(1) Chorus'")
        .await;
    stage.browser.run("delete document.hidden").await;
    stage.browser.click("[data-do=notify]").await;
    stage
        .browser
        .eventually(
            "document.querySelector('[data-do=notify]').getAttribute('aria-pressed') === 'true'",
        )
        .await;
    bob.send_expecting("alice", "in sight", "delivered_sse")
        .await;
    stage
        .browser
        .eventually("document.title === '(2) Chorus'")
        .await;
    assert_eq!(
        stage.browser.run(&format!("return {shown}")).await,
        json!("[]")
    );
    stage.browser.run(HIDE_PAGE).await;
    alice.submit("~alice", &ask).await;
    let decision = json!([
        "A decision waits for you",
        "When shall the migration run?",
        "#/sessions"
    ]);
    stage
        .browser
        .eventually(&are_shown(json!([decision])))
        .await;
    // Another frame comes, and the decision is still open: it is no news.
    let advisory = json!({"advisory_text": "reading"});
    alice
        .submit("~alice", &said(&alice, "agent_advisory", &advisory))
        .await;
    bob.send_expecting("alice", "**Are** you there?", "delivered_sse")
        .await;
    let message = json!([
        "bob@chorus",
        "Are you there?",
        "#/conversations/bob%40chorus/"
    ]);
    stage
        .browser
        .eventually(&are_shown(json!([decision, message])))
        .await;
    stage.browser.run("delete document.hidden").await;
    stage
        .browser
        .run("window.shown[0].notification.dispatchEvent(new Event('click'))")
        .await;
    stage
        .browser
        .eventually("location.hash === '#/sessions'")
        .await;
    stage.browser.shows("When shall the migration run?").await;
}
