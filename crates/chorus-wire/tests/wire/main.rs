//! Tests of the other wire types: the documents' examples, every fault of every field, and properties of any text.

#![expect(
    clippy::unwrap_used,
    reason = "a failure in a test helper fails the test"
)]

mod catalogue;
mod channel_events;
mod channel_examples;
mod credits;
mod culture;
mod envelope_faults;
mod envelope_round;
mod examples;
mod json;
mod market_job;
mod market_skill;
mod names;
mod reader;
mod requests;
mod shape;
mod time;
