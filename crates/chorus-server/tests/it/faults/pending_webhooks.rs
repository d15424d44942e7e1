//! Webhooks whose outcome cannot be stored at once: their senders are told to come back, and get the true outcome in the end (R-27,
//!

use crate::support::actors::database_proxy::DatabaseProxy;
use crate::support::actors::{Agent, Answer, Reply, Webhook, WriteFault};
use crate::support::hub::{Hub, eventually, within};
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than a repeated send waits for the first one, and far shorter than a webhook may take.
const FEW_SECONDS: Duration = Duration::from_secs(10);
/// Past every deadline of a webhook, on one hub and on several.
const LONG: Duration = Duration::from_secs(3_600);

/// The key of the one send of each story.
const KEY: &str = "k";

async fn pair(hub: &Hub, webhook: &Webhook) -> (Agent, Agent) {
    (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    )
}

/// Sends in the background, until the webhook has the message.
async fn send_and_await_post(
    alice: &Agent,
    body: &Value,
    webhook: &mut Webhook,
) -> tokio::task::JoinHandle<Answer> {
    let (alice, body) = (alice.clone(), body.clone());
    let sending = tokio::spawn(async move { alice.send_once(KEY, &body).await });
    webhook.next_request().await;
    sending
}

/// The repeated send is told to come back, soon.
async fn told_to_come_back(alice: &Agent, body: &Value) {
    let answer = within(FEW_SECONDS, alice.send_once(KEY, body))
        .await
        .expect("an answer within a few seconds");
    answer.refused(503, "ERR_UNAVAILABLE");
    assert_ne!(answer.header("retry-after"), "");
}

/// Repeats the send until it has an outcome.
async fn await_outcome(alice: &Agent, body: &Value) -> Value {
    eventually("the send has an outcome", || async {
        alice.send_once(KEY, body).await.status == 200
    })
    .await;
    alice.send_once(KEY, body).await.data(200)
}

story!(
    an_outcome_that_cannot_be_stored_is_kept_until_it_can,
    |hub| async {
        let mut webhook = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = pair(&hub, &webhook).await;
        let body = alice.message(&bob.id, "delivered and answered");
        let sending = send_and_await_post(&alice, &body, &mut webhook).await;
        let fault = WriteFault::begin(&hub).await;
        webhook.release();
        let first = sending.await.unwrap();
        first.refused(503, "ERR_UNAVAILABLE");
        told_to_come_back(&alice, &body).await;
        fault.end().await;
        let outcome = await_outcome(&alice, &body).await;
        assert_eq!(outcome["delivery"], "delivered");
        hub.advance(LONG);
        hub.maintain().await;
        assert_eq!(await_outcome(&alice, &body).await, outcome);
        let status = alice.delivery_status(&outcome["trace_id"]).await;
        assert_eq!(status["status"], "acknowledged");
        assert!(webhook.received_nothing(), "it was posted once");
    }
);

story!(
    a_repeat_of_a_send_in_flight_is_answered_within_seconds,
    with(|set| set.hub.webhook_timeout = LONG),
    |hub| async {
        let mut webhook = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = pair(&hub, &webhook).await;
        let body = alice.message(&bob.id, "take your time");
        let sending = send_and_await_post(&alice, &body, &mut webhook).await;
        told_to_come_back(&alice, &body).await;
        webhook.release();
        let first = sending.await.unwrap().data(200);
        assert_eq!(first["delivery"], "delivered");
        assert_eq!(alice.send_once(KEY, &body).await.data(200), first);
        assert!(webhook.received_nothing(), "it was posted once");
    }
);

story!(
    maintenance_does_not_fail_a_webhook_that_is_in_flight,
    with(|set| set.hub.webhook_timeout = LONG),
    |hub| async {
        // On two hubs the other one takes it for lost, and the true outcome replaces that.
        let mut webhook = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = pair(&hub, &webhook).await;
        let body = alice.message(&bob.id, "slow");
        let sending = send_and_await_post(&alice, &body, &mut webhook).await;
        hub.advance(2 * LONG);
        hub.maintain().await;
        webhook.release();
        let first = sending.await.unwrap().data(200);
        assert_eq!(first["delivery"], "delivered");
        let status = alice.delivery_status(&first["trace_id"]).await;
        assert_eq!(status["status"], "acknowledged");
        assert_eq!(status.get("error_code"), None);
        assert_eq!(alice.send_once(KEY, &body).await.data(200), first);
        let health = hub.anonymous().get("/health").await.data(200);
        assert_eq!(health["messages_failed"], 0, "{health}");
    }
);

single_hub_story!(
    maintenance_gives_no_outcome_to_a_webhook_that_is_in_flight,
    with(|set| set.hub.webhook_timeout = LONG),
    |hub| async {
        // A hub alone knows which webhooks are in flight, so no sender is told meanwhile that one has failed.
        let mut webhook = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = pair(&hub, &webhook).await;
        let body = alice.message(&bob.id, "slow");
        let sending = send_and_await_post(&alice, &body, &mut webhook).await;
        hub.advance(2 * LONG);
        hub.maintain().await;
        told_to_come_back(&alice, &body).await;
        webhook.release();
        let first = sending.await.unwrap().data(200);
        assert_eq!(first["delivery"], "delivered");
    }
);

/// A commit whose answer was lost leaves a message that no hub posts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_never_posted_gets_an_outcome_on_a_hub_alone() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = pair(&hub, &webhook).await;
    let body = alice.message(&bob.id, "perhaps");
    proxy.cut_after_commit();
    alice
        .send_once(KEY, &body)
        .await
        .refused(503, "ERR_UNAVAILABLE");
    eventually("the hub is connected again", || async {
        alice.send(&alice.id, "are you there?").await.status == 202
    })
    .await;
    told_to_come_back(&alice, &body).await;
    hub.maintain().await;
    told_to_come_back(&alice, &body).await;
    hub.advance(LONG);
    hub.maintain().await;
    let outcome = alice.send_once(KEY, &body).await.data(200);
    assert_eq!(outcome["delivery"], "failed");
    assert_eq!(outcome["error_code"], "ERR_AGENT_UNREACHABLE");
    assert!(webhook.received_nothing());
}

story!(a_message_that_was_heard_does_not_stay_queued, |hub| async {
    // the reader has it and never asks for it again
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let sent = alice.send_expecting(&bob.id, "hello", "queued").await;
    let fault = WriteFault::begin(&hub).await;
    let mut inbox = bob.inbox_after("0").await;
    assert_eq!(inbox.texts(1).await, ["hello"]);
    // As long as the database refuses the mark.
    let refused = alice.post("/agent/session", &json!({})).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(inbox);
    fault.end().await;
    eventually("it is marked as delivered", || async {
        alice.delivery_status(&sent["trace_id"]).await["status"] == "delivered"
    })
    .await;
    let health = hub.anonymous().get("/health").await.data(200);
    assert_eq!(health["messages_queued"], 0, "{health}");
});
