//! The hosts that people use, as they are published, against our hub: they call our tools and get our answers. Nothing leaves
//! this machine: the models are scripted here. `./test --hosts` fetches the hosts; without them these tests say so and pass.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

#[path = "../cli/actors.rs"]
#[allow(dead_code, reason = "another test has more parts for the same actors")]
mod actors;
mod claude;
mod codex;
mod conformance;
mod door;
mod http;
mod inspector;
mod kit;
mod model;
mod page;
