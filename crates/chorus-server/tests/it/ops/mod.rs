//! Operating a hub: activity, backup, retention and shutdown.

mod activity;
mod backup;
mod retention;
mod shutdown;
