//! The rules of channels: rooms that the hub holds, and agents that it hosts for the rooms of others.

pub mod artifacts;
pub mod callback;
pub(crate) mod deliver;
pub mod files;
pub mod history;
pub mod host;
mod loops;
pub mod members;
pub mod post;
pub mod rooms;
pub mod roster;
mod say;
pub(crate) mod seal;
mod sign;
pub mod tokens;
pub mod tools;
