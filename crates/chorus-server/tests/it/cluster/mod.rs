//! Hubs that share one PostgreSQL database and one NATS.

mod budget_sync;
mod bus;
mod forged_messages;
mod frame_stream;
mod same_bytes;
mod two_hubs;
