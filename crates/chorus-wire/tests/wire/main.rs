//! The words of the wire: printed examples, tables of faults, and what holds for every text.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a test's own tools fails the test"
)]

mod catalogue;
mod channel_events;
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
