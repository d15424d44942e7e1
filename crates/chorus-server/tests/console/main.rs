//! Browser tests of the console: a real Chromium against a real hub.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

mod axe;
mod browser;
mod decisions;
mod handovers;
mod hiring;
mod hostile;
mod inbox;
mod links;
mod live;
mod members;
mod next_steps;
mod notifying;
mod opening;
mod operating;
mod outage;
mod own_activity;
mod pages;
mod polite;
mod reading;
mod signing;
mod stage;
#[path = "../it/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the stories of the hub use more of the harness"
)]
mod support;
mod views;
mod weight;
