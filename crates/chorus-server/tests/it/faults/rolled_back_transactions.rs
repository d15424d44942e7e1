//! Transactions that PostgreSQL rolls back, or whose connection breaks before the commit: retried once, then refused as
//! retryable (D-88).

use crate::support::actors::{Agent, texts};
use crate::support::hub::{Hub, eventually};
use futures_util::future::join_all;
use tokio_postgres::{Client, NoTls};

/// A way to the database beside the hub's.
async fn beside(hub: &Hub) -> Client {
    let url = hub.settings.hub.database_url.as_ref().unwrap().expose();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn pair(hub: &Hub) -> (Agent, Agent) {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "before", "queued").await;
    (alice, bob)
}

/// Every connection of the hub ends, and the next ones are made under what was set meanwhile.
async fn reconnected(database: &Client, alice: &Agent) {
    let ended = "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()";
    database.query(ended, &[]).await.unwrap();
    eventually("the hub is connected again", || async {
        alice.send(&alice.id, "hello?").await.status == 202
    })
    .await;
}

/// An error of this code.
fn raise(code: &str) -> String {
    format!("raise exception 'for the sake of another' using errcode = '{code}'")
}

/// From now on the first `times` rows of `table` of which `when` is true meet this; `how` says at which moment.
async fn undoing(database: &Client, how: &str, table: &str, when: &str, with: &str, times: u32) {
    let sql = format!(
        "drop sequence if exists undoings; create sequence undoings;
         create or replace function undo() returns trigger language plpgsql as $$ begin
           if {when} and nextval('undoings') <= {times} then
             {with};
           end if;
           return new;
         end $$;
         drop trigger if exists undo on {table};
         create {how} on {table} {} for each row execute function undo()",
        if how.contains("constraint") {
            "deferrable initially deferred"
        } else {
            ""
        }
    );
    database.batch_execute(&sql).await.unwrap();
}

/// Twenty messages at once, half of them under keys, and what their senders were told.
async fn twenty(alice: &Agent, bob: &Agent, round: &str) -> Vec<(String, u16)> {
    let send = async |n: usize| {
        let text = format!("{round} {n}");
        let answer = match n % 2 {
            0 => alice.send(&bob.id, &text).await,
            _ => {
                alice
                    .send_once(&text.replace(' ', "-"), &alice.message(&bob.id, &text))
                    .await
            }
        };
        (text, answer.status)
    };
    join_all((0..20).map(send)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_database_undoes_is_done_again_once_and_heard_in_one_order() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let (mut inbox, database) = (bob.inbox().await, beside(&hub).await);
    let mut told = Vec::new();
    for (round, (how, table, code)) in [
        ("trigger undo before insert", "log", "40001"),
        ("trigger undo before insert", "log", "40P01"),
        ("trigger undo before insert", "idempotency", "40001"),
        ("trigger undo before update", "counters", "40P01"),
        // This one is not said before the commit.
        ("constraint trigger undo after insert", "log", "40001"),
    ]
    .into_iter()
    .enumerate()
    {
        undoing(&database, how, table, "true", &raise(code), 3).await;
        let sent = twenty(&alice, &bob, &format!("round {round}")).await;
        assert!(
            sent.iter().all(|(_, status)| *status == 200),
            "{how} on {table}, {code}: {sent:?}"
        );
        let undone = database
            .query_one("select last_value from undoings", &[])
            .await
            .unwrap();
        assert!(undone.get::<_, i64>(0) >= 3, "it was undone");
        database
            .batch_execute(&format!("drop trigger undo on {table}"))
            .await
            .unwrap();
        told.extend(sent.into_iter().map(|(text, _)| text));
    }
    let heard = inbox.texts(100).await;
    assert_eq!(
        heard,
        texts(&bob.whole_history(1_000).await)[1..],
        "the stream has what is kept, in its order"
    );
    let (mut heard, mut told) = (heard, told);
    heard.sort();
    told.sort();
    assert_eq!(heard, told, "each of them once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_undone_every_time_is_a_503_with_nothing_half_done_and_its_neighbours_pass() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let database = beside(&hub).await;
    undoing(
        &database,
        "trigger undo before insert",
        "idempotency",
        "new.key = 'cursed'",
        &raise("40001"),
        1_000,
    )
    .await;
    let body = alice.message(&bob.id, "cursed");
    let (cursed, sent) = tokio::join!(
        alice.send_once("cursed", &body),
        twenty(&alice, &bob, "neighbour")
    );
    cursed.refused(503, "ERR_UNAVAILABLE");
    assert!(sent.iter().all(|(_, status)| *status == 202), "{sent:?}");
    assert_eq!(
        bob.whole_history(1_000).await.len(),
        21,
        "nothing of it is there"
    );
    let health = hub.anonymous().get("/health").await.data(200);
    assert_eq!(health["messages_queued"], 21, "nor counted: {health}");
    database
        .batch_execute("drop trigger undo on idempotency")
        .await
        .unwrap();
    assert_eq!(alice.send_once("cursed", &body).await.status, 202);
    assert_eq!(
        texts(&bob.history("").await).last().map(String::as_str),
        Some("cursed")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_loses_a_deadlock_writes_all_the_same() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let database = beside(&hub).await;
    let name: String = database
        .query_one("select current_database()", &[])
        .await
        .unwrap()
        .get(0);
    // Who waits looks for a deadlock after this long, and gives way: that is to be the hub, and soon enough.
    database
        .batch_execute(&format!(
            "alter database {name} set deadlock_timeout = '3s'"
        ))
        .await
        .unwrap();
    reconnected(&database, &alice).await;
    let (mut rival, watcher) = (beside(&hub).await, beside(&hub).await);
    rival
        .batch_execute("set deadlock_timeout = '1h'")
        .await
        .unwrap();
    let locked = rival.transaction().await.unwrap();
    locked
        .execute("update counters set stored = stored", &[])
        .await
        .unwrap();
    let waits = "select count(*) from pg_stat_activity
                 where datname = current_database() and application_name = 'chorus' and wait_event_type = 'Lock'";
    let against = async {
        eventually("the hub waits", || async {
            watcher
                .query_one(waits, &[])
                .await
                .unwrap()
                .get::<_, i64>(0)
                == 1
        })
        .await;
        // The hub has this one, and waits for the other.
        locked
            .execute(
                "update settings set value = value where name = 'indexed'",
                &[],
            )
            .await
            .unwrap();
        locked.commit().await.unwrap();
    };
    let (sent, ()) = tokio::join!(alice.send(&bob.id, "across"), against);
    assert_eq!(sent.status, 202, "{sent:?}");
    assert_eq!(texts(&bob.history("").await), ["before", "across"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_before_the_commit_loses_no_message() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    let (mut inbox, database) = (bob.inbox().await, beside(&hub).await);
    let broken = "perform pg_terminate_backend(pg_backend_pid())";
    for n in 0..3 {
        undoing(
            &database,
            "trigger undo before insert",
            "log",
            "true",
            broken,
            1,
        )
        .await;
        alice
            .send_expecting(&bob.id, &format!("message {n}"), "delivered_sse")
            .await;
    }
    assert_eq!(
        inbox.texts(3).await,
        ["message 0", "message 1", "message 2"]
    );
    undoing(
        &database,
        "trigger undo before insert",
        "log",
        "true",
        broken,
        1_000,
    )
    .await;
    alice
        .send(&bob.id, "for nothing")
        .await
        .refused(503, "ERR_UNAVAILABLE");
    database
        .batch_execute("drop trigger undo on log")
        .await
        .unwrap();
    eventually("the hub is connected again", || async {
        alice.send(&alice.id, "hello?").await.status == 202
    })
    .await;
    assert_eq!(
        texts(&bob.history("").await),
        ["before", "message 0", "message 1", "message 2"]
    );
}

/// D-07: the place of an entry is found under the lock, whatever the database's own idea of a snapshot is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_default_is_another_isolation_changes_nothing() {
    let Some(hub) = Hub::cluster(|_| ()).await else {
        return;
    };
    let (alice, bob) = pair(&hub).await;
    for level in ["repeatable read", "serializable"] {
        let database = beside(&hub).await;
        let name: String = database
            .query_one("select current_database()", &[])
            .await
            .unwrap()
            .get(0);
        let set = format!("alter database {name} set default_transaction_isolation = '{level}'");
        database.batch_execute(&set).await.unwrap();
        reconnected(&database, &hub.agent_at_hub(0, &alice)).await;
        reconnected(&database, &hub.agent_at_hub(1, &alice)).await;
        for round in 0..3 {
            let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
            let (one, other) = (
                format!("{level} {round} here"),
                format!("{level} {round} there"),
            );
            let (here, there) =
                tokio::join!(twenty(&here, &bob, &one), twenty(&there, &bob, &other));
            assert!(
                here.iter().chain(&there).all(|(_, status)| *status == 202),
                "{here:?} {there:?}"
            );
        }
    }
    assert_eq!(bob.whole_history(1_000).await.len(), 241);
}
