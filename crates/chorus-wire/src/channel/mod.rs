//! The words of channels: rooms and who is in them, what services deliver, what agents answer (the channel document).

pub mod artifact;
pub mod callback_event;
pub mod channels;
pub mod connection;
pub mod delivery;
pub mod history_row;
pub mod mention;
mod message_part;
pub mod persistent_callback;
