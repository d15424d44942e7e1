//! Outgoing HTTP seen from the receiver's side: real sockets on loopback, names from a table.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a test's own tools fails the test"
)]

mod answers;
mod bounds;
mod broken;
mod guard;
mod proxies;
mod receiver;
mod streams;

use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError, WebhookAnswer};
use std::time::Duration;

/// Reaches loopback, and gives up soon enough for a test that waits for it.
fn hasty() -> OutgoingPolicy {
    OutgoingPolicy {
        allow_private: true,
        deadline: Duration::from_millis(300),
        ..OutgoingPolicy::default()
    }
}

/// Reaches loopback, and never gives up before a busy machine has answered.
fn patient() -> OutgoingPolicy {
    OutgoingPolicy {
        allow_private: true,
        deadline: Duration::from_secs(10),
        ..OutgoingPolicy::default()
    }
}

async fn post(to: &OutgoingClient, url: &str) -> Result<WebhookAnswer, PostError> {
    to.post(url, &[], "{}".into()).await
}
