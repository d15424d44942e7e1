//! Endpoints that accept a connection and never answer: webhooks to others stay fast (R-99, D-103).

use crate::support_compute::{
    AttackedHub, HubClient, RunningAttack, await_condition, registration, start_name_server,
    start_tarpit, start_webhook,
};
use serde_json::json;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// More than all places for webhooks.
const ATTACK_THREADS: usize = 300;
/// For three hundred requests that wait.
const MAX_GROWTH_MIB: u64 = 48;
/// A neighbour's webhook takes milliseconds; without shares it waits for a deadline of ten seconds.
const NEIGHBOUR_LIMIT: Duration = Duration::from_secs(3);

fn assert_neighbour_is_fast(client: HubClient, alice: &str) {
    for _ in 0..4 {
        let (outcome, took) = client.send_message(alice, "alice@chorus", "bob@chorus");
        assert!(outcome.starts_with("delivered "), "{outcome}");
        assert!(took < NEIGHBOUR_LIMIT, "{took:?}");
    }
}

fn register_neighbours(client: HubClient) -> String {
    let (port, _) = start_webhook();
    let endpoint = format!("http://127.0.0.1:{port}/");
    client.register(&registration("bob@chorus", Some(&endpoint)), None);
    client.register(&registration("alice@chorus", None), None)
}

fn send_to_tarpits(client: HubClient, key: String, tarpits: usize) -> RunningAttack {
    RunningAttack::start(ATTACK_THREADS, move |number| {
        let receiver = format!("tarpit-{}@chorus", number % tarpits);
        client.send_message(&key, "mallory@chorus", &receiver);
    })
}

#[test]
fn one_address_with_many_names_and_owners_does_not_delay_other_webhooks() {
    let name_server = start_name_server().to_string();
    let hub = AttackedHub::start(&["--allow-private-endpoints", "--name-server", &name_server]);
    let client = hub.client();
    let alice = register_neighbours(client);
    let mallory = client.register(&registration("mallory@chorus", None), None);
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = start_tarpit(listener);
    for n in 0..20 {
        let endpoint = format!("http://tarpit-{n}.example:{port}/");
        client.register(
            &registration(&format!("tarpit-{n}@chorus"), Some(&endpoint)),
            None,
        );
    }
    let watch = hub.watch();
    let attack = send_to_tarpits(client, mallory, 20);
    await_condition("the tarpit holds posts", || {
        accepted.load(Ordering::Relaxed) >= 32
    });
    assert_neighbour_is_fast(client, &alice);
    attack.finish();
    watch.assert_unharmed(MAX_GROWTH_MIB);
}

#[test]
fn one_owner_with_many_addresses_does_not_delay_other_webhooks() {
    let hub = AttackedHub::start(&["--allow-private-endpoints"]);
    let client = hub.client();
    let alice = register_neighbours(client);
    let mut body = registration("mallory@chorus", None);
    body["owner_id"] = json!("mallory-and-sons");
    let mallory = client.register(&body, None);
    let mut accepted = Vec::new();
    for n in 0..12 {
        let listener = TcpListener::bind(format!("127.0.0.{}:0", n + 2)).unwrap();
        let endpoint = format!("http://{}/", listener.local_addr().unwrap());
        accepted.push(start_tarpit(listener));
        let mut body = registration(&format!("tarpit-{n}@chorus"), Some(&endpoint));
        body["owner_id"] = json!("mallory-and-sons");
        client.register(&body, Some(&mallory));
    }
    let watch = hub.watch();
    let attack = send_to_tarpits(client, mallory, 12);
    let held = || {
        accepted
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .sum::<usize>()
    };
    await_condition("the tarpits hold posts", || held() >= 32);
    assert_neighbour_is_fast(client, &alice);
    attack.finish();
    watch.assert_unharmed(MAX_GROWTH_MIB);
}
