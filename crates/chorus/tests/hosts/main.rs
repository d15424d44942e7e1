//! Published hosts (Claude Code, Codex, the MCP inspector) against our hub, with scripted models, and published tools
//! (linters, a fuzzer, generators of clients) against its contract: nothing leaves this machine. `./test --hosts` fetches
//! them; without them these tests print a message and pass.
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
mod contract;
mod contract_fuzz;
mod http;
mod inspector;
mod kit;
mod model;
mod openclaw;
mod page;
mod plugin;
mod processes;
mod proxy;
mod streams;
mod terminal;
mod wake;
mod wake_codex;
mod wake_crash;
