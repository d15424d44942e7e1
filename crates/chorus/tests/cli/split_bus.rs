//! A bus that splits in two while every hub still reaches the database: messages cross by the log, and no frame is said to
//! have reached anybody whom it did not (D-80, D-81, D-82).

use crate::crash::{join, join_with_key, newcomer};
use crate::faults::{eventually, frame};
use crate::network::Network;
use crate::servers::Servers;
use crate::split::{Everywhere, Machine, at, says, status};
use chorus_client::HubClient;
use serde_json::json;
use std::time::{Duration, Instant};

/// Far more than the third of a second between two looks at the log, for the sake of a busy machine; the bus is away for longer.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_splits_in_two_holds_up_no_message_and_claims_no_delivery() {
    let Some(network) = Network::make() else {
        return;
    };
    let Some((servers, other_bus, between)) = Servers::start_two_on(&network) else {
        return;
    };
    let near = Machine::start(&network, &servers, &servers.nats, "near");
    let far = Machine::start(&network, &servers, &other_bus, "far");
    let alice = join(near.url(), "alice").await;
    let (_, carol) = join_with_key(near.url(), "carol").await;
    let mut bob = Everywhere::join("bob", [&near, &far]).await;
    for client in &bob.clients {
        assert_eq!(frame(client, "~bob", "all").await, (200, json!(2)));
    }
    between.cut();
    let [one, other] = bob.clients.each_ref();
    let lonely = async || {
        [
            frame(one, "~bob", "half").await,
            frame(other, "~bob", "half").await,
        ]
    };
    let (reached, refused) = ((200, json!(1)), (503, json!("bus-unavailable")));
    // Which of them keeps the memory is the bus's own choice.
    let (mine, yours) = ([reached.clone(), refused.clone()], [refused, reached]);
    eventually(
        "one side has the memory, and the other knows that it has not",
        async || {
            let answers = lonely().await;
            answers == mine || answers == yours
        },
    )
    .await;
    for number in 0..10 {
        let (text, began) = (format!("by the log {number}"), Instant::now());
        says(&alice, "alice", "bob", &text).await;
        bob.inboxes[1].until(&text);
        assert!(
            began.elapsed() < SOON,
            "nothing waits for the bus: {:?}",
            began.elapsed()
        );
    }
    assert_eq!(status(&at(&far, &carol), "/agent/messages").await, 200);
    rotate(&near, "carol", &carol).await;
    let began = Instant::now();
    eventually("a key that was taken back", async || {
        status(&at(&far, &carol), "/agent/messages").await == 401
    })
    .await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    between.mend();
    bob.right_again().await;
    assert_eq!(says(&alice, "alice", "bob", "after").await, "delivered_sse");
}

/// Takes a key back; the client has the next one.
pub async fn rotate(machine: &Machine, name: &str, key: &str) -> HubClient {
    let registered = at(machine, key)
        .register_agent(&newcomer(name))
        .await
        .unwrap();
    at(machine, registered.api_key.unwrap().expose())
}
