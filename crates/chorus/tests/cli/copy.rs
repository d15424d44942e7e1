//! `chorus admin copy`: moves agents, keys and messages from SQLite to PostgreSQL.

use crate::actors::{Hub, chorus, run};
use crate::crash::{envelope, fetch_all_texts, register_with_key};
use crate::postgres::Database;
use chorus_client::HubClient;
use chorus_wire::secret::Secret;

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_moves_from_sqlite_to_postgresql_with_all_its_data() {
    let Some(database) = Database::fresh().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut hub = Hub::start(folder.path(), &["--data-dir", "old"]);
    let (alice, _) = register_with_key(&hub.url, "alice").await;
    let (bob, key) = register_with_key(&hub.url, "bob").await;
    for n in 0..30 {
        alice
            .send_message("bob@chorus", &envelope("alice", &format!("message {n}")), 0)
            .await
            .unwrap();
    }
    let texts = fetch_all_texts(&bob).await;
    assert_eq!(texts.len(), 30);
    let copy = || {
        let mut command = chorus(folder.path());
        command
            .args(["admin", "copy", "--data-dir", "old", "--json"])
            .env("CHORUS_DATABASE", &database.url);
        run(command, "")
    };
    let refused = copy();
    assert_ne!(refused.code, 0, "a running hub is not copied");
    assert!(
        refused.err.contains("another hub is running"),
        "{refused:?}"
    );
    hub.process.send_signal("TERM");
    assert_eq!(hub.process.await_exit(), Some(0));
    let copied = copy().ok().json();
    assert_eq!(
        (
            &copied[0]["copied"]["principals"],
            &copied[0]["copied"]["log"].as_u64().is_some()
        ),
        (&2.into(), &true)
    );
    let hub = Hub::start(
        folder.path(),
        &[
            "--data-dir",
            "new",
            "--database",
            &database.url,
            "--seal-key-file",
            "old/seal.key",
        ],
    );
    let bob = HubClient::new(&hub.url, Some(Secret::new(&key))).unwrap();
    assert_eq!(
        fetch_all_texts(&bob).await,
        texts,
        "the same messages with the same ids"
    );
    bob.send_message("bob@chorus", &envelope("bob", "it goes on"), 0)
        .await
        .unwrap();
    assert_eq!(fetch_all_texts(&bob).await.len(), 31);
    drop(hub);
    let again = copy();
    assert_ne!(again.code, 0);
    assert!(
        again.err.contains("already"),
        "a database with data is not changed: {again:?}"
    );
}
