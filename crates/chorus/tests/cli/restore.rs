//! A hub restored from a backup: clients with newer cursors than the backup still receive new messages.

use crate::actors::{Hub, TIMEOUT, chorus, run};
use crate::crash::{collect_messages, envelope, fetch_all_texts, register_with_key};
use crate::postgres::Database;
use chorus_client::HubClient;
use chorus_wire::cursor::Cursor;
use chorus_wire::secret::Secret;
use std::path::Path;
use tokio_postgres::NoTls;

fn run_restored(folder: &Path, args: &[&str]) -> crate::actors::CommandOutput {
    let mut command = chorus(folder);
    command.args(["admin", "restored"]).args(args);
    run(command, "")
}

/// Two messages before the backup, three after it, and one after the restore; `copy` returns the options that serve the
/// backup.
async fn run_restore_story(
    folder: &Path,
    options: &[&str],
    copy_is_marked: bool,
    copy: impl AsyncFnOnce() -> Vec<String>,
) {
    let mut hub = Hub::start(folder, options);
    let (alice, alice_key) = register_with_key(&hub.url, "alice").await;
    let (_, bob_key) = register_with_key(&hub.url, "bob").await;
    let send = async |alice: &HubClient, text: &str| {
        alice
            .send_message("bob@chorus", &envelope("alice", text), 0)
            .await
            .unwrap();
    };
    send(&alice, "one").await;
    send(&alice, "two").await;
    // A PostgreSQL database can be copied only without open connections.
    hub.process.send_signal("TERM");
    hub.process.await_exit();
    let copy_options = copy().await;
    let copy_options: Vec<&str> = copy_options.iter().map(String::as_str).collect();
    let mut hub = Hub::start(folder, options);
    let alice = client(&hub, &alice_key);
    let bob = client(&hub, &bob_key);
    for text in ["lost", "lost too", "and this"] {
        send(&alice, text).await;
    }
    let last_seen = *fetch_all_texts(&bob).await.last_key_value().unwrap().0;
    assert_ne!(
        run_restored(folder, options).code,
        0,
        "refused while a hub runs"
    );
    hub.process.send_signal("KILL");
    hub.process.await_exit();
    if !copy_is_marked {
        run_restored(folder, &copy_options).ok();
    }
    let hub = Hub::start(folder, &copy_options);
    let alice = client(&hub, &alice_key);
    let bob = client(&hub, &bob_key);
    let mut received =
        collect_messages(bob.open_inbox(Some(Cursor::from_log_seq(last_seen))).await).await;
    send(&alice, "new").await;
    let (id, text) = tokio::time::timeout(TIMEOUT, received.recv())
        .await
        .expect("the new message arrives")
        .unwrap();
    assert_eq!(text, "new");
    assert!(id > last_seen, "no id is used twice");
    assert_eq!(
        fetch_all_texts(&bob)
            .await
            .into_values()
            .collect::<Vec<_>>(),
        ["one", "two", "new"]
    );
}

fn client(hub: &Hub, key: &str) -> HubClient {
    HubClient::new(&hub.url, Some(Secret::new(key))).unwrap()
}

//
#[tokio::test(flavor = "multi_thread")]
async fn a_client_ahead_of_the_backup_receives_new_messages_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    run_restore_story(folder.path(), &["--data-dir", "old"], true, async || {
        let mut command = chorus(folder.path());
        command.args(["admin", "backup", "--data-dir", "old", "copy"]);
        run(command, "").ok();
        ["--data-dir", "copy"].map(str::to_owned).to_vec()
    })
    .await;
}

//
#[tokio::test(flavor = "multi_thread")]
async fn a_client_ahead_of_the_backup_receives_new_messages_on_postgresql() {
    let (Some(old), Some(new)) = (Database::fresh().await, Database::fresh().await) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    run_restore_story(
        folder.path(),
        &["--data-dir", "data", "--database", &old.url],
        false,
        async || {
            let name = |url: &str| url.rsplit('/').next().unwrap().to_owned();
            let (server, _) = old.url.rsplit_once('/').unwrap();
            let (client, connection) =
                tokio_postgres::connect(&format!("{server}/postgres"), NoTls)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let from = name(&old.url);
            let to = name(&new.url);
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
