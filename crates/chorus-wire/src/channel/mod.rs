//! The wire types of channels: channels and members, deliveries, callback events, artifacts (the channel document).

pub mod artifact;
pub mod callback_event;
pub mod channels;
pub mod connection;
pub mod delivery;
pub mod history_row;
pub mod invitation;
pub mod mention;
mod message_part;
pub mod persistent_callback;
