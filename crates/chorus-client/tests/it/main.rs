//! Black-box tests of the client: files, streams, retries and direct exchange.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

mod channel;
mod direct;
mod files;
mod frame;
mod scripted;
mod send;
mod stream;
