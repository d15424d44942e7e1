//! A partition between bus servers while every hub reaches the database: messages still arrive by the log, and the recipient
//! count of a frame stays correct (D-80, D-81, D-82).

use crate::crash::{register_client, register_with_key, registration};
use crate::faults::{eventually, send_frame};
use crate::network::Network;
use crate::servers::Servers;
use crate::split::{AgentAtBothHubs, Machine, client_at, fetch_status, send_text};
use chorus_client::HubClient;
use serde_json::json;
use std::time::{Duration, Instant};

/// Much longer than the third of a second between two reads of the log, for a busy machine; shorter than the partition.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_bus_delays_no_message_and_counts_no_false_delivery() {
    let Some(network) = Network::create() else {
        return;
    };
    let Some((servers, other_bus, between)) = Servers::start_two_on(&network) else {
        return;
    };
    let near = Machine::start(&network, &servers, &servers.nats, "near");
    let far = Machine::start(&network, &servers, &other_bus, "far");
    let alice = register_client(near.url(), "alice").await;
    let (_, carol) = register_with_key(near.url(), "carol").await;
    let mut bob = AgentAtBothHubs::register_client("bob", [&near, &far]).await;
    for client in &bob.clients {
        assert_eq!(send_frame(client, "~bob", "all").await, (200, json!(2)));
    }
    between.cut();
    let [one, other] = bob.clients.each_ref();
    let send_from_both = async || {
        [
            send_frame(one, "~bob", "half").await,
            send_frame(other, "~bob", "half").await,
        ]
    };
    let reached = (200, json!(1));
    let refused = (503, json!("bus-unavailable"));
    // NATS decides which side keeps the frame stream.
    let first_side = [reached.clone(), refused.clone()];
    let second_side = [refused, reached];
    eventually(
        "one side has the frame stream, and the other refuses frames",
        async || {
            let answers = send_from_both().await;
            answers == first_side || answers == second_side
        },
    )
    .await;
    for number in 0..10 {
        let text = format!("by the log {number}");
        let started_at = Instant::now();
        send_text(&alice, "alice", "bob", &text).await;
        bob.inboxes[1].read_until(&text);
        assert!(
            started_at.elapsed() < SOON,
            "messages do not wait for the bus: {:?}",
            started_at.elapsed()
        );
    }
    assert_eq!(
        fetch_status(&client_at(&far, &carol), "/agent/messages").await,
        200
    );
    rotate_key(&near, "carol", &carol).await;
    let started_at = Instant::now();
    eventually("the revoked key is refused", async || {
        fetch_status(&client_at(&far, &carol), "/agent/messages").await == 401
    })
    .await;
    assert!(started_at.elapsed() < SOON, "{:?}", started_at.elapsed());
    between.restore();
    bob.wait_consistent().await;
    assert_eq!(
        send_text(&alice, "alice", "bob", "after").await,
        "delivered_sse"
    );
}

/// Rotates a key; the returned client has the new one.
pub async fn rotate_key(machine: &Machine, name: &str, key: &str) -> HubClient {
    let registered = client_at(machine, key)
        .register_agent(&registration(name))
        .await
        .unwrap();
    client_at(machine, registered.api_key.unwrap().expose())
}
