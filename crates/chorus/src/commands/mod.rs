//! One file per command.

pub mod admin;
pub mod completions;
pub mod demo;
pub mod discover;
pub mod frame;
pub mod history;
pub mod invite;
pub mod listen;
pub mod market;
pub mod register;
pub mod reply;
pub mod send;
pub mod serve;
mod span;
pub mod status;
pub mod unregister;
pub mod whoami;
