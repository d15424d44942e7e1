//! Channel members that accept a connection and never answer: members of other channels hear at once (R-99, D-103).

use crate::support_compute::{
    AttackedHub, HubClient, await_condition, registration, start_tarpit, start_webhook,
};
use serde_json::json;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ATTACKED_CHANNELS: usize = 2;
/// In each attacked channel. All of them are three times the places of the outbox: a post that waits for its receiver leaves its
/// place after some seconds, and the next one of the same owner would take it.
const HANGING_MEMBERS: usize = 200;
const MAX_GROWTH_MIB: u64 = 32;

fn create_channel(client: HubClient, key: &str) -> String {
    let (status, answer) = client.request("POST", "/channels", Some(key), &json!({"name": "room"}));
    assert_eq!(status, 201, "{answer}");
    let id = answer["data"]["id"].as_str().or(answer["id"].as_str());
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn add_member(client: HubClient, key: &str, channel: &str, name: &str, url: &str) {
    let path = format!("/channels/{channel}/members");
    let body = json!({"name": name, "connection": url});
    let (status, answer) = client.request("POST", &path, Some(key), &body);
    assert_eq!(status, 201, "{answer}");
}

fn post_message(client: HubClient, key: &str, channel: &str) {
    let path = format!("/channels/{channel}/messages");
    let (status, answer) = client.request("POST", &path, Some(key), &json!({"content": "hello"}));
    assert!(matches!(status, 200..=202), "{answer}");
}

#[test]
fn hanging_members_of_one_owner_do_not_delay_other_channels() {
    let hub = AttackedHub::start(&["--allow-private-endpoints"]);
    let client = hub.client();
    let mallory = client.register(&registration("mallory@chorus", None), None);
    let alice = client.register(&registration("alice@chorus", None), None);
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let tarpit = listener.local_addr().unwrap();
    let accepted = start_tarpit(listener);
    let mut attacked = Vec::new();
    for _ in 0..ATTACKED_CHANNELS {
        let channel = create_channel(client, &mallory);
        for n in 0..HANGING_MEMBERS {
            let url = format!("http://{tarpit}/inbox/sk_{n}");
            add_member(client, &mallory, &channel, &format!("m{n}"), &url);
        }
        attacked.push(channel);
    }
    let room = create_channel(client, &alice);
    let (port, delivered) = start_webhook();
    let url = format!("http://127.0.0.1:{port}/inbox/sk_bob");
    add_member(client, &alice, &room, "bob", &url);
    let watch = hub.watch();
    for channel in &attacked {
        post_message(client, &mallory, channel);
    }
    await_condition("the tarpit holds posts", || {
        accepted.load(Ordering::Relaxed) >= 8
    });
    let started = Instant::now();
    post_message(client, &alice, &room);
    await_condition("the neighbour's member hears", || {
        delivered.load(Ordering::Relaxed) > 0
    });
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    watch.assert_unharmed(MAX_GROWTH_MIB);
}
