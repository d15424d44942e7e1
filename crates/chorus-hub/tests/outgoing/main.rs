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

use chorus_hub::delivery::outgoing::{Answer, Outgoing, Policy, PostError};
use std::time::Duration;

/// Reaches loopback, and gives up soon enough for a test that waits for it.
fn hasty() -> Policy {
    Policy {
        allow_private: true,
        deadline: Duration::from_millis(300),
        ..Policy::default()
    }
}

/// Reaches loopback, and never gives up before a busy machine has answered.
fn patient() -> Policy {
    Policy {
        allow_private: true,
        deadline: Duration::from_secs(10),
        ..Policy::default()
    }
}

async fn post(to: &Outgoing, url: &str) -> Result<Answer, PostError> {
    to.post(url, &[], "{}".into()).await
}
