//! The words of channels: rooms and who is in them, what services deliver, what agents answer (the channel document).

pub mod artifact;
pub mod connection;
pub mod delivery;
pub mod event;
pub mod mention;
mod part;
pub mod room;
pub mod row;
pub mod standing;
