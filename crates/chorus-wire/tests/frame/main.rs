//! Tests of the frame wire types: every fault of every field, the grammars, and properties that hold for any text.

#![expect(
    clippy::unwrap_used,
    reason = "a failure in a test helper fails the test"
)]

mod catalogue;
mod discovery;
mod drafts;
mod examples;
mod filter;
mod nested;
mod order;
mod round;
mod rules;
mod scope;
mod submission;
mod table;
mod text;
mod tools;
