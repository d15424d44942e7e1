//! The words of frames: one table of faults over every field of every kind, grammars, and what holds for every text.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a test's own tools fails the test"
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
