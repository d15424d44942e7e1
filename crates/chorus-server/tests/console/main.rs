//! The console as people use it: a real browser, a real hub, nothing in between.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

#[path = "../it/actors/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the stories of the hub need more of them"
)]
mod actors;
mod browser;
mod decisions;
#[path = "../it/front.rs"]
#[allow(dead_code, reason = "the page does not know how many hubs there are")]
mod front;
mod hostile;
#[path = "../it/hub.rs"]
#[allow(dead_code, reason = "the stories of the hub need more of it")]
mod hub;
mod live;
#[path = "../it/nats.rs"]
#[allow(dead_code, reason = "the page does not know how many hubs there are")]
mod nats;
mod pages;
mod polite;
#[path = "../it/postgres.rs"]
#[allow(dead_code, reason = "the page does not know which database there is")]
mod postgres;
mod signing;
mod stage;
mod views;
mod weight;
