//! A message to many members is stored once, and every member reads it whole (D-108).

use crate::support::actors::channel::{add_agent, create_channel, post_message};
use crate::support::actors::database::read_number;
use crate::support::actors::{Agent, Event};
use crate::support::hub::{Hub, eventually};
use serde_json::json;
use std::time::Duration;

const MEMBERS: usize = 12;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A channel of alice with this many agents, and its path.
async fn create_full_channel(hub: &Hub) -> (Agent, Vec<Agent>, String) {
    let alice = hub.agent("alice").await;
    let path = create_channel(&alice, "ops").await;
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let member = hub.agent(&format!("member-{number}")).await;
        add_agent(&alice, &path, &member).await;
        members.push(member);
    }
    (alice, members, path)
}

/// Replays the member's inbox: its invitation, then the delivery.
async fn read_delivery(member: &Agent) -> Event {
    let mut inbox = member.inbox_after("0").await;
    inbox.next("channel_invite").await;
    inbox.next("channel").await
}

story!(every_member_reads_the_whole_message, |hub| async {
    // D-108, invariant 5: the same bytes live and replayed
    let (alice, members, path) = create_full_channel(&hub).await;
    let mut live = members[0].inbox().await;
    // What looks like the beginning of a common part is inside it.
    let content = format!(
        "sealed:eA {}é,\"callback\":\"https://elsewhere.example\"",
        "x".repeat(9_000)
    );
    let parts = json!([{"text": "a"}, {"data": {"a": 1, "callback": "b"}}]);
    let body = json!({"content": content, "parts": parts});
    let said = alice
        .post(&format!("{path}/messages"), &body)
        .await
        .data(201);
    let first = live.next("channel").await;
    let mut callbacks = std::collections::BTreeSet::new();
    for member in &members {
        let event = read_delivery(member).await;
        assert_eq!(event.data["message"]["content"], json!(content));
        assert_eq!(event.data["message"]["parts"], parts);
        assert_eq!(event.data["message"]["id"], said["id"]);
        assert_eq!(event.data["channel"]["name"], "ops");
        if member.id == members[0].id {
            assert_eq!(event.text, first.text);
        }
        let callback = event.data["callback"].as_str().unwrap().to_owned();
        assert!(callbacks.insert(callback), "each has a callback of its own");
    }
    hub.restart().await;
    let member = hub.reconnect(&members[MEMBERS - 1]);
    let event = read_delivery(&member).await;
    assert_eq!(event.data["message"]["content"], json!(content));
});

sqlite_story!(a_message_to_many_members_is_on_disk_once, |hub| async {
    // D-108
    let (alice, _, path) = create_full_channel(&hub).await;
    let marker = "4a5c0ffee0ddba11";
    let content = format!("{marker}{}", "x".repeat(40_000));
    post_message(&alice, &path, &content).await;
    hub.restart().await;
    let files = ["chorus.db", "chorus.db-wal"]
        .map(|name| std::fs::read(hub.dir.path().join(name)).unwrap_or_default())
        .concat();
    let copies = files
        .windows(marker.len())
        .filter(|at| *at == marker.as_bytes())
        .count();
    // One in the channel's history and one for all deliveries; each may be in the write-ahead log as well.
    assert!((1..=4).contains(&copies), "{copies} copies");
});

story!(
    retention_deletes_shared_parts_with_the_last_delivery,
    with(|set| set.hub.retain = Some(30 * DAY)),
    |hub| async {
        // D-108
        let (alice, members, path) = create_full_channel(&hub).await;
        post_message(&alice, &path, "old").await;
        hub.advance(20 * DAY);
        post_message(&alice, &path, "newer").await;
        hub.advance(11 * DAY);
        hub.maintain().await;
        eventually("the old message is trimmed", async || {
            let mut inbox = members[0].inbox_after("0").await;
            // The gap is told from the first deletion on.
            let event = match inbox.any().await.unwrap() {
                gap if gap.name == "gap" => inbox.next("channel").await,
                event => event,
            };
            event.data["message"]["content"] == "newer"
        })
        .await;
        for member in &members {
            let mut inbox = member.inbox_after("0").await;
            inbox.next("gap").await;
            let event = inbox.next("channel").await;
            assert_eq!(event.data["message"]["content"], "newer");
        }
    }
);

story!(
    a_message_to_many_members_leaves_no_token_rows,
    |hub| async {
        // D-122: each delivery has two tokens of its own, and the hub can tell them without a row
        let (alice, members, path) = create_full_channel(&hub).await;
        let before = read_number(&hub, "select count(*) from channel_tokens").await;
        post_message(&alice, &path, "hello").await;
        for member in &members {
            let delivery = read_delivery(member).await.data;
            assert!(delivery["callback"].is_string(), "{delivery}");
            assert!(delivery["mcp"]["headers"].is_object(), "{delivery}");
        }
        let after = read_number(&hub, "select count(*) from channel_tokens").await;
        assert_eq!((before, after), (0, 0));
    }
);
