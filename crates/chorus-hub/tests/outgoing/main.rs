//! Tests of outgoing HTTP from the receiver's side, with real sockets on loopback and names from a
//! table.

#![expect(
    clippy::unwrap_used,
    reason = "an error in a test's own tools fails the test"
)]

mod address_guard;
mod answers;
mod bounds;
mod broken;
mod capacity;
mod dns;
mod proxies;
mod receiver;
mod streams;

use chorus_hub::delivery::outgoing::capacity_shares::DeliveryOwner;
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError, WebhookAnswer};
use std::time::Duration;

/// The owner of receivers where it does not matter whose they are.
const OWNER: DeliveryOwner = DeliveryOwner::numbered(1);

/// Reaches loopback, with a deadline short enough for a test that waits for it.
fn short_deadline_policy() -> OutgoingPolicy {
    OutgoingPolicy {
        allow_private: true,
        deadline: Duration::from_millis(300),
        ..OutgoingPolicy::default()
    }
}

/// Reaches loopback, with a deadline long enough for a busy machine.
fn long_deadline_policy() -> OutgoingPolicy {
    OutgoingPolicy {
        allow_private: true,
        deadline: Duration::from_secs(10),
        ..OutgoingPolicy::default()
    }
}

async fn post(client: &OutgoingClient, url: &str) -> Result<WebhookAnswer, PostError> {
    client.post(OWNER, url, &[], "{}".into()).await
}
