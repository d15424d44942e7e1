//! Stories about the hub, told from outside over HTTP, each on a hub of its own and on both databases.
#![allow(clippy::unwrap_used, reason = "in a story, what is not there is a failure")]

#[macro_use]
mod story;
mod actors;
mod chance;
mod examples;
mod hub;
mod postgres;

mod a2a;
mod activity;
mod backup;
mod catchup;
mod deadlines;
mod discover;
mod edges;
mod frame_bounds;
mod frame_edges;
mod frame_filters;
mod frame_identity;
mod frame_load;
mod frame_orgs;
mod frame_refusals;
mod frame_resume;
mod frame_scopes;
mod frame_stream;
mod frame_submission;
mod history;
mod idempotency;
mod identity_keys;
mod inbox;
mod invites;
mod limits;
mod load;
mod market_endings;
mod market_jobs;
mod market_ledger;
mod market_reputation;
mod market_skills;
mod mutations;
mod operator;
mod races;
mod receipts;
mod register;
mod retention;
mod send_outcomes;
mod shutdown;
mod ssrf;
mod stalled;
mod streaming;
mod tls;
mod unregister;
mod validation;
mod webhook;
mod wellknown;
