//! Notifications of the browser, for what comes while the page is not in sight.

use crate::stage::{Stage, moment, said};
use serde_json::{Value, json};

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

/// What was shown: title, text and place of each notification.
const SHOWN: &str =
    "JSON.stringify(window.shown.map(({ title, body, tag }) => [title, body, tag]))";

impl Stage {
    /// With the bell, as a person does it.
    async fn turn_notifications_on(&self) {
        self.browser.click("[data-do=notify]").await;
        self.browser
            .eventually(
                "document.querySelector('[data-do=notify]').getAttribute('aria-pressed') === 'true'",
            )
            .await;
    }

    async fn has_notified(&self, expected: Value) {
        let expected = json!(expected.to_string());
        self.browser
            .eventually(&format!("{SHOWN} === {expected}"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_notified_unasked_or_while_the_page_is_in_sight() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.browser.run(RECORD_NOTIFICATIONS).await;
    let send = async |text: &str, title: &str| {
        bob.send_expecting("alice", text, "delivered_sse").await;
        let counted = format!("document.title === '{title}'");
        stage.browser.eventually(&counted).await;
    };
    stage.browser.run(HIDE_PAGE).await;
    send("unasked", "(1) Chorus").await;
    stage.browser.run("delete document.hidden").await;
    stage.turn_notifications_on().await;
    send("in sight", "(2) Chorus").await;
    let shown = stage.browser.run(&format!("return {SHOWN}")).await;
    assert_eq!(shown, json!("[]"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_and_a_message_are_notified_once_while_the_page_is_out_of_sight() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.browser.run(RECORD_NOTIFICATIONS).await;
    stage.turn_notifications_on().await;
    stage.browser.run(HIDE_PAGE).await;
    let ask = said(&alice, "agent_binding_moment", &moment());
    alice.submit("~alice", &ask).await;
    let decision = json!([
        "A decision waits for you",
        "When shall the migration run?",
        "#/sessions"
    ]);
    stage.has_notified(json!([decision])).await;
    // Another frame comes, and the decision is still open: it is no news.
    let advisory = json!({"advisory_text": "reading"});
    let advisory = said(&alice, "agent_advisory", &advisory);
    alice.submit("~alice", &advisory).await;
    bob.send_expecting("alice", "**Are** you there?", "delivered_sse")
        .await;
    let message = json!([
        "bob@chorus",
        "Are you there?",
        "#/conversations/bob%40chorus/"
    ]);
    stage.has_notified(json!([decision, message])).await;
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
