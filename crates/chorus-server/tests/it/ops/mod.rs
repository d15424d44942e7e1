//! Operating a hub: activity, backup, readiness, retention and shutdown.

mod activity;
mod backup;
mod metrics;
mod operator_acts;
mod readiness;
mod retention;
mod shutdown;
mod trace_export;
mod traces;
