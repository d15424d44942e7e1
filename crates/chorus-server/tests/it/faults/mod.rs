//! Faults and races: a failing database, concurrent requests, stalled readers, fuzzed input.

mod concurrent_requests;
mod database;
mod fuzzed_requests;
mod pending_webhooks;
mod rolled_back_transactions;
mod stalled_readers;
