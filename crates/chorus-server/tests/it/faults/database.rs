//! A PostgreSQL that stops answering: clients get a retryable refusal, and the hub recovers with the database.

use crate::support::actors::database_proxy::DatabaseProxy;
use crate::support::actors::{Agent, registration, texts};
use crate::support::hub::{Hub, eventually, within};
use futures_util::future::join_all;
use std::time::Duration;
use tokio_postgres::NoTls;

async fn queued(alice: &Agent, bob: &Agent, text: &str) -> bool {
    alice.send(&bob.id, text).await.status == 202
}

/// Told in a form that says to try again.
async fn told_to_come_back(alice: &Agent, bob: &Agent, text: &str) {
    alice
        .send(&bob.id, text)
        .await
        .refused(503, "ERR_UNAVAILABLE");
}

async fn pair(hub: &Hub) -> (Agent, Agent) {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "before", "queued").await;
    (alice, bob)
}

/// a commit with an unknown outcome is never answered as done, and never published twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_a_503_and_shows_once() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let mut inbox = bob.inbox().await;
    let body = alice.message(&bob.id, "perhaps");
    proxy.cut_after_commit();
    alice
        .send_once("k", &body)
        .await
        .refused(503, "ERR_UNAVAILABLE");
    // The row is there: the stream shows it without a retry, and a client that retries gets its answer instead of a second row.
    assert_eq!(inbox.texts(1).await, ["perhaps"]);
    eventually("the hub is connected again", || async {
        queued(&alice, &alice, "are you there?").await
    })
    .await;
    let again = alice.send_once("k", &body).await;
    assert!(matches!(again.status, 200 | 202), "{again:?}");
    alice
        .send_expecting(&bob.id, "after", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["after"]);
    assert_eq!(
        texts(&bob.history("").await),
        ["before", "perhaps", "after"]
    );
}

/// D-88: a client that revokes a key and gets no answer may have revoked it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_taken_back_by_a_commit_whose_answer_is_lost_is_dead() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (_, bob) = pair(&hub).await;
    bob.history("").await;
    proxy.cut_after_commit();
    bob.post("/register", &registration(&bob.id))
        .await
        .refused(503, "ERR_UNAVAILABLE");
    eventually("its key is dead", || async {
        bob.get("/agent/messages").await.status == 401
    })
    .await;
}

/// A statement that waits for the lock of another session gives up after its timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_is_a_503_and_the_next_one_passes() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let (mut other, connection) = tokio_postgres::connect(proxy.database(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let lock = other.transaction().await.unwrap();
    lock.batch_execute("lock table log in access exclusive mode")
        .await
        .unwrap();
    told_to_come_back(&alice, &bob, "too long").await;
    lock.rollback().await.unwrap();
    assert!(queued(&alice, &bob, "after").await);
    assert_eq!(texts(&bob.history("").await), ["before", "after"]);
}

/// A server behind a lost network closes no connection, so its own timeout does not help the hub.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_falls_silent_is_given_up_on_and_found_again() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    proxy.pause();
    told_to_come_back(&alice, &bob, "into the silence").await;
    proxy.resume();
    eventually("the hub is connected again", || async {
        queued(&alice, &bob, "after").await
    })
    .await;
    let said = texts(&bob.history("").await);
    assert_eq!(
        (
            said.first().map(String::as_str),
            said.last().map(String::as_str)
        ),
        (Some("before"), Some("after"))
    );
    assert!(
        !said.contains(&"into the silence".to_owned()),
        "it was answered as not done: {said:?}"
    );
}

/// D-17: with a database that does not answer, readers wait no longer than one read may take, however many are queued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_database_that_falls_silent_are_all_told_within_one_wait() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, _) = pair(&hub).await;
    proxy.pause();
    let all = join_all((0..80).map(|_| alice.get("/agent/messages")));
    let all = within(Duration::from_secs(32), all)
        .await
        .expect("no reader waits for those before it as well");
    assert!(all.iter().all(|answer| answer.status == 503), "{all:?}");
    proxy.resume();
    eventually("it reads again", || async {
        alice.get("/agent/messages").await.status == 200
    })
    .await;
}

/// D-90
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_starts_waits_for_anothers_migration_however_long_it_takes() {
    let Some(hub) = Hub::cluster(|_| ()).await else {
        return;
    };
    let url = hub.settings.hub.database_url.as_ref().unwrap().expose();
    let (other, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    // As long as a step on a large table: longer than any statement of a request may take.
    let migrating = other
        .batch_execute("begin; select pg_advisory_xact_lock(4842713); select pg_sleep(11); commit");
    let starting = async {
        let (watcher, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let held = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4842713 and granted";
        eventually("the other one migrates", || async {
            watcher.query_one(held, &[]).await.unwrap().get::<_, i64>(0) == 1
        })
        .await;
        hub.start_second_in_other_dir().await
    };
    let (migrated, started) = tokio::join!(migrating, starting);
    migrated.unwrap();
    within(
        crate::support::actors::STEP_TIMEOUT,
        started.expect("it starts").stop(),
    )
    .await
    .expect("a stop in time");
}

/// After a failover the old primary may still answer, and takes no writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_writes_is_a_503_and_is_looked_for_again() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let (other, connection) = tokio_postgres::connect(proxy.database(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let name: String = other
        .query_one("select current_database()", &[])
        .await
        .unwrap()
        .get(0);
    other
        .batch_execute(&format!(
            "alter database {name} set default_transaction_read_only = on"
        ))
        .await
        .unwrap();
    let ended = "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()";
    other.query(ended, &[]).await.unwrap();
    for _ in 0..3 {
        told_to_come_back(&alice, &bob, "nowhere to be kept").await;
    }
    let back = format!(
        "begin read write; alter database {name} reset default_transaction_read_only; commit"
    );
    other.batch_execute(&back).await.unwrap();
    assert!(
        queued(&alice, &bob, "after").await,
        "with the first that comes"
    );
    assert_eq!(texts(&bob.history("").await), ["before", "after"]);
}

/// A newer hub changes a table under one that runs: what was planned before is planned again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_changes_under_a_running_hub_is_read_again_and_written_at_once() {
    let Some((hub, proxy)) = DatabaseProxy::start_hub(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let reply = serde_json::json!({"status": "ok"});
    let first = alice.send_expecting(&bob.id, "first", "queued").await;
    let second = alice.send_expecting(&bob.id, "second", "queued").await;
    let answered = bob.respond(&first["trace_id"], &reply).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    bob.history("").await;
    let (other, connection) = tokio_postgres::connect(proxy.database(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    other
        .batch_execute("alter table log alter column body type varchar")
        .await
        .unwrap();
    for _ in 0..40 {
        let read = bob.get("/agent/messages").await;
        assert!(
            matches!(read.status, 200 | 503),
            "told to come back at worst: {read:?}"
        );
    }
    assert_eq!(bob.get("/agent/messages").await.status, 200);
    let answered = bob.respond(&second["trace_id"], &reply).await;
    assert_eq!(answered.status, 200, "{answered:?}");
}
