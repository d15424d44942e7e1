//! Faults and races: a failing database, concurrent requests, stalled readers, fuzzed input.

mod concurrent_requests;
mod database;
mod fuzzed_requests;
mod lost_answers;
mod pending_webhooks;
mod rolled_back_transactions;
mod stalled_readers;
