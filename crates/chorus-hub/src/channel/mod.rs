//! The rules of channels: rooms that the hub holds, and agents that it hosts for the rooms of others.

pub mod callback;
pub(crate) mod deliver;
pub mod history;
pub mod host;
mod loops;
pub mod members;
pub mod post;
pub mod rooms;
pub mod roster;
mod say;
pub(crate) mod seal;
pub mod tokens;

pub(crate) use rooms::{Seat, enter, seat};
pub(crate) use say::{Line, Message, Speaker, say, tell};
