//! Credentials that travel in deliveries are sealed at rest, and readers get them unchanged (D-105, R-74).

use crate::support::actors::database::dump_postgres;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use crate::support::hub::Hub;
use serde_json::{Value, json};

const SIGNING_SECRET: &str = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";

/// The hexadecimal or base64 part of every secret in a text.
fn find_secrets(text: &str) -> Vec<String> {
    let is_part_of_secret = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part_of_secret(c))
        .filter_map(|word| {
            let (prefix, secret) = word.split_once('_')?;
            let is_secret = ["sk", "tok", "mcp", "cs", "ca", "ci", "whsec"].contains(&prefix);
            is_secret.then(|| secret.to_owned())
        })
        .filter(|secret| secret.len() >= 12)
        .collect()
}

/// A delivery of another service, with its own tokens.
fn hosted_delivery(message: &str) -> Value {
    json!({"channel": {"id": "elsewhere"}, "message": {"id": message, "sender": "x", "content": "from elsewhere"},
        "mcp": {"url": "https://s.example/mcp?key=mcp_aaaabbbbccccdddd0001", "headers": {"Authorization": "Bearer mcp_aaaabbbbccccdddd0002"}},
        "callback": "https://s.example/inbox/tok_aaaabbbbccccdddd0003"})
}

/// Makes traffic with every kind of secret, and returns the texts that clients were given.
async fn make_traffic(hub: &Hub) -> Vec<String> {
    let room = OwnedChannel::create(hub, "alice").await;
    let bob = hub.agent("bob").await;
    room.add_agent(&bob).await;
    let mut oak = RemoteMember::accepting(hub).await;
    room.add_member(
        &json!({"name": "oak", "connection": oak.url(), "signing_secret": SIGNING_SECRET}),
    )
    .await;
    let mut seen = vec![
        bob.key.clone(),
        room.owner.key.clone(),
        SIGNING_SECRET.to_owned(),
        oak.url(),
    ];
    for path in ["/agent/connection", "/agent/session"] {
        seen.push(bob.post(path, &json!({})).await.text);
    }
    let member = bob.id.split('@').next().unwrap();
    let callback = room.path(&format!("/members/{member}/callback"));
    seen.push(bob.post(&callback, &json!({})).await.text);
    let invite = hub.operator().invite(&json!({"label": "one"})).await;
    seen.push(invite.to_string());
    let mut inbox = bob.inbox().await;
    room.post_message("hello").await;
    seen.push(inbox.next("channel").await.text);
    seen.push(oak.next_delivery().await.to_string());
    let connection = bob.post("/agent/connection", &json!({})).await;
    seen.push(connection.text.clone());
    let url = connection.data(200)["connection_string"].clone();
    let path = url
        .as_str()
        .unwrap()
        .strip_prefix(&hub.url)
        .unwrap()
        .to_owned();
    let hosted = hub.anonymous().post(&path, &hosted_delivery("1")).await;
    assert_eq!(hosted.status, 200, "{hosted:?}");
    seen.push(inbox.next("channel").await.text);
    seen
}

sqlite_story!(a_backup_has_no_token_that_a_client_was_given, |hub| async {
    // R-74, D-105: the log of inbox deliveries and of hosted deliveries included
    let seen = make_traffic(&hub).await;
    let secrets: Vec<String> = seen.iter().flat_map(|text| find_secrets(text)).collect();
    assert!(secrets.len() >= 14, "{secrets:?}");
    let to = tempfile::tempdir().unwrap();
    let (from, copy) = (hub.dir.path().to_owned(), to.path().join("copy"));
    let target = copy.clone();
    tokio::task::spawn_blocking(move || chorus_hub::ops::backup_data_dir(&from, &target))
        .await
        .unwrap()
        .expect("a copy");
    for dir in [copy.as_path(), hub.dir.path()] {
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap_or_default();
            for secret in &secrets {
                let is_found = bytes
                    .windows(secret.len())
                    .any(|part| part == secret.as_bytes());
                assert!(!is_found, "{} has {secret}", path.display());
            }
        }
    }
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_database_has_no_token_that_a_client_was_given() {
    // R-74, D-105
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let seen = make_traffic(&hub).await;
    let secrets: Vec<String> = seen.iter().flat_map(|text| find_secrets(text)).collect();
    assert!(secrets.len() >= 14, "{secrets:?}");
    let url = hub.settings.hub.database_url.as_ref().unwrap().expose();
    let rows = dump_postgres(url).await;
    let has_row_of = |table: &str| rows.iter().any(|(name, _)| name == table);
    assert!(
        ["log", "principals", "sessions", "channel_tokens"]
            .into_iter()
            .all(has_row_of)
    );
    for secret in &secrets {
        let in_hexadecimal: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (table, row) in &rows {
            let is_found = row.contains(secret.as_str()) || row.contains(&in_hexadecimal);
            assert!(!is_found, "{table} has {secret}: {row}");
        }
    }
}

story!(
    a_delivery_is_replayed_with_the_credentials_it_had_live,
    |hub| async {
        // R-25, D-105: after a restart, and at either hub
        let room = OwnedChannel::create(&hub, "alice").await;
        let bob = hub.agent("bob").await;
        room.add_agent(&bob).await;
        let mut inbox = bob.inbox().await;
        room.post_message("hello").await;
        let live = inbox.next("channel").await;
        assert!(
            live.data["callback"]
                .as_str()
                .unwrap()
                .contains("/inbox/tok_")
        );
        drop(inbox);
        let mut replayed = bob.inbox_after("0").await;
        replayed.next("channel_invite").await;
        let again = replayed.next("channel").await;
        assert_eq!((again.text, again.id), (live.text.clone(), live.id.clone()));
        drop(replayed);
        hub.restart().await;
        let bob = hub.reconnect(&bob);
        let mut replayed = bob.inbox_after("0").await;
        replayed.next("channel_invite").await;
        assert_eq!(replayed.next("channel").await.text, live.text);
    }
);
