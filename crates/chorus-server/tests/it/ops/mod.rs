//! Operating a hub: activity, backup, retention and shutdown.

mod activity;
mod backup;
mod metrics;
mod operator_acts;
mod retention;
mod shutdown;
mod trace_export;
mod traces;
