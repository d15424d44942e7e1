//! Black-box stories: each runs over HTTP against its own hub, on SQLite, on PostgreSQL and on two hubs.
#![allow(
    clippy::unwrap_used,
    reason = "in a story, what is not there is a failure"
)]

#[macro_use]
mod support;

mod channel;
mod cluster;
mod envelope;
mod faults;
mod frame;
mod http;
mod identity;
mod market;
mod mcp;
mod ops;
