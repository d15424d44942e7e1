//! A PostgreSQL that stops answering, or answers nobody: the caller is told to come back, and the hub is there when it does.

use crate::actors::between::Between;
use crate::actors::{Agent, texts};
use crate::hub::{Hub, eventually};
use tokio_postgres::NoTls;

async fn queued(alice: &Agent, bob: &Agent, text: &str) -> bool {
    alice.send(&bob.id, text).await.status == 202
}

/// Told that nothing was done, in a form that says to try again.
async fn told_to_come_back(alice: &Agent, bob: &Agent, text: &str) {
    alice.send(&bob.id, text).await.refused(503, "ERR_UNAVAILABLE");
}

async fn pair(hub: &Hub) -> (Agent, Agent) {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.says(&bob.id, "before", "queued").await;
    (alice, bob)
}

/// a commit of which nobody knows is never answered as done, and never told twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_a_503_and_shows_once() {
    let Some((hub, between)) = Between::hub(|_| ()).await else { return };
    let (alice, bob) = pair(&hub).await;
    let mut inbox = bob.inbox().await;
    let body = alice.message(&bob.id, "perhaps");
    between.cut_after_commit();
    alice.send_once("k", &body).await.refused(503, "ERR_UNAVAILABLE");
    // The row is there: the stream shows it by itself, and whoever tries again gets its answer instead of a second one.
    assert_eq!(inbox.texts(1).await, ["perhaps"]);
    eventually("the hub is connected again", || async { queued(&alice, &alice, "are you there?").await }).await;
    let again = alice.send_once("k", &body).await;
    assert!(matches!(again.status, 200 | 202), "{again:?}");
    alice.says(&bob.id, "after", "delivered_sse").await;
    assert_eq!(inbox.texts(1).await, ["after"]);
    assert_eq!(texts(&bob.history("").await), ["before", "perhaps", "after"]);
}

/// A statement that waits for somebody else's lock gives up by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_is_a_503_and_the_next_one_passes() {
    let Some((hub, between)) = Between::hub(|_| ()).await else { return };
    let (alice, bob) = pair(&hub).await;
    let (mut other, connection) = tokio_postgres::connect(between.database(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = other.transaction().await.unwrap();
    lock.batch_execute("lock table log in access exclusive mode").await.unwrap();
    told_to_come_back(&alice, &bob, "too long").await;
    lock.rollback().await.unwrap();
    assert!(queued(&alice, &bob, "after").await);
    assert_eq!(texts(&bob.history("").await), ["before", "after"]);
}

/// A server behind a network that is gone closes nothing, so its own timeout helps nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_falls_silent_is_given_up_on_and_found_again() {
    let Some((hub, between)) = Between::hub(|_| ()).await else { return };
    let (alice, bob) = pair(&hub).await;
    between.hold();
    told_to_come_back(&alice, &bob, "into the silence").await;
    between.let_go();
    eventually("the hub is connected again", || async { queued(&alice, &bob, "after").await }).await;
    let said = texts(&bob.history("").await);
    assert_eq!((said.first().map(String::as_str), said.last().map(String::as_str)), (Some("before"), Some("after")));
    assert!(!said.contains(&"into the silence".to_owned()), "it was answered as not done: {said:?}");
}
