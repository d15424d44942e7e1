//! An owner that fills the disk: what it says to many members is stored once, and its quota ends it (R-95, D-108, finding F10).

use crate::support_compute::{AttackedHub, HubClient, registration};
use serde_json::{Value, json};
use std::path::Path;

const MEMBERS: usize = 60;
const POSTS: usize = 20;
const POST_CHARS: usize = 40_000;
/// A copy for each member would be 48 MB.
const MAX_STORED_BYTES: u64 = 8_000_000;
/// The quota of the owner: the posts above fit, and not three times as many.
const QUOTA_BYTES: u64 = 2_000_000;

/// The sizes of all files in a folder.
fn count_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

fn post_line(client: HubClient, key: &str, channel: &str, chars: usize) -> (u16, Value) {
    let path = format!("/channels/{channel}/messages");
    let body = json!({"content": "x".repeat(chars)});
    client.request("POST", &path, Some(key), &body)
}

#[test]
fn one_owner_stores_its_posts_once_and_no_more_than_its_quota() {
    let quota = format!("stored_bytes={QUOTA_BYTES}");
    let hub = AttackedHub::start(&["--quota", &quota]);
    let client = hub.client();
    let mut body = registration("mallory@chorus", None);
    body["owner_id"] = json!("mallory-and-sons");
    let mallory = client.register(&body, None);
    let alice = client.register(&registration("alice@chorus", None), None);
    client.register(&registration("bob@chorus", None), None);
    let new = json!({"name": "room"});
    let (status, made) = client.request("POST", "/channels", Some(&mallory), &new);
    assert_eq!(status, 201, "{made}");
    let channel = made["data"]["id"].as_str().unwrap().to_owned();
    for number in 0..MEMBERS {
        let name = format!("member-{number}@chorus");
        let mut body = registration(&name, None);
        body["owner_id"] = json!("mallory-and-sons");
        client.register(&body, Some(&mallory));
        let path = format!("/channels/{channel}/members");
        let member = json!({"agent_id": name});
        let (status, added) = client.request("POST", &path, Some(&mallory), &member);
        assert_eq!(status, 201, "{added}");
    }
    let watch = hub.watch();
    let before = count_bytes(&hub.data_dir());
    for _ in 0..POSTS {
        let (status, answer) = post_line(client, &mallory, &channel, POST_CHARS);
        assert!(matches!(status, 200..=202), "{answer}");
    }
    let stored = count_bytes(&hub.data_dir()).saturating_sub(before);
    println!("{POSTS} posts to {MEMBERS} members took {stored} bytes");
    assert!(stored < MAX_STORED_BYTES, "{stored} bytes");
    let refusal = (0..2 * POSTS)
        .map(|_| post_line(client, &mallory, &channel, POST_CHARS))
        .find(|(status, _)| *status == 403);
    let (_, refusal) = refusal.expect("the quota holds");
    assert_eq!(refusal["error"]["code"], "ERR_QUOTA", "{refusal}");
    assert!(refusal.to_string().contains("stored_bytes"), "{refusal}");
    // A neighbour's quota is its own.
    let (outcome, _) = client.send_message(&alice, "alice@chorus", "bob@chorus");
    assert!(outcome.starts_with("queued "), "{outcome}");
    watch.assert_unharmed(32);
}
