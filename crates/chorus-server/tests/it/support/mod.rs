//! The test harness: the `story!` macros, a hub per story, its servers, and the actors that talk to it.

#[macro_use]
mod story;

pub mod actors;
pub mod contract;
pub mod examples;
pub mod front;
pub mod hub;
pub mod nats;
pub mod peer_messages;
pub mod postgres;
pub mod seeded_random;
