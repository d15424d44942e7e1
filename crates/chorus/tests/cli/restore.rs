//! A hub that was lost and comes back from a copy: whoever remembers more than the copy does hears what is new.

use crate::actors::{Hub, PATIENCE, chorus, run};
use crate::crash::{envelope, hear, history, join_with_key};
use crate::postgres::Database;
use chorus_client::HubClient;
use chorus_wire::cursor::Cursor;
use chorus_wire::secret::Secret;
use std::path::Path;
use tokio_postgres::NoTls;

fn restored(folder: &Path, words: &[&str]) -> crate::actors::Ended {
    let mut command = chorus(folder);
    command.args(["admin", "restored"]).args(words);
    run(command, "")
}

/// Two messages before the copy, three after it, and one after it was restored; `copy` says where the copy is served from.
async fn story(folder: &Path, options: &[&str], copy: impl AsyncFnOnce() -> Vec<String>) {
    let mut hub = Hub::start(folder, options);
    let (alice, alices) = join_with_key(&hub.url, "alice").await;
    let (_, bobs) = join_with_key(&hub.url, "bob").await;
    let say = async |alice: &HubClient, text: &str| {
        alice
            .send_message("bob@chorus", &envelope("alice", text), 0)
            .await
            .unwrap();
    };
    say(&alice, "one").await;
    say(&alice, "two").await;
    // A copy of a database is made when nobody is in it.
    hub.process.signal("TERM");
    hub.process.await_end();
    let place = copy().await;
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let mut hub = Hub::start(folder, options);
    let (alice, bob) = (client(&hub, &alices), client(&hub, &bobs));
    for text in ["lost", "lost too", "and this"] {
        say(&alice, text).await;
    }
    let seen = *history(&bob).await.last_key_value().unwrap().0;
    assert_ne!(restored(folder, options).code, 0, "not while a hub uses it");
    hub.process.signal("KILL");
    hub.process.await_end();
    restored(folder, &place).ok();
    let hub = Hub::start(folder, &place);
    let (alice, bob) = (client(&hub, &alices), client(&hub, &bobs));
    let mut heard = hear(bob.open_inbox(Some(Cursor::from_log_seq(seen))).await).await;
    say(&alice, "new").await;
    let (id, text) = tokio::time::timeout(PATIENCE, heard.recv())
        .await
        .expect("what is new is heard")
        .unwrap();
    assert_eq!(text, "new");
    assert!(id > seen, "no id is given out twice");
    assert_eq!(
        history(&bob).await.into_values().collect::<Vec<_>>(),
        ["one", "two", "new"]
    );
}

fn client(hub: &Hub, key: &str) -> HubClient {
    HubClient::new(&hub.url, Some(Secret::new(key))).unwrap()
}

//
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_saw_more_than_the_copy_hears_what_is_new_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    story(folder.path(), &["--data-dir", "old"], async || {
        let mut command = chorus(folder.path());
        command.args(["admin", "backup", "--data-dir", "old", "copy"]);
        run(command, "").ok();
        ["--data-dir", "copy"].map(str::to_owned).to_vec()
    })
    .await;
}

//
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_saw_more_than_the_copy_hears_what_is_new_on_postgresql() {
    let (Some(old), Some(new)) = (Database::fresh().await, Database::fresh().await) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    story(
        folder.path(),
        &["--data-dir", "data", "--database", &old.url],
        async || {
            let name = |url: &str| url.rsplit('/').next().unwrap().to_owned();
            let (server, _) = old.url.rsplit_once('/').unwrap();
            let (client, connection) =
                tokio_postgres::connect(&format!("{server}/postgres"), NoTls)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let (from, to) = (name(&old.url), name(&new.url));
            client
                .batch_execute(&format!("drop database {to}"))
                .await
                .unwrap();
            client
                .batch_execute(&format!("create database {to} template {from}"))
                .await
                .unwrap();
            ["--data-dir", "data", "--database", &new.url]
                .map(str::to_owned)
                .to_vec()
        },
    )
    .await;
}
