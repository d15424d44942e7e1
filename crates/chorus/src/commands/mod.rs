//! One file per command.

pub mod admin;
pub mod channel;
pub mod completions;
pub mod connection;
pub mod demo;
pub mod discover;
pub mod frame;
pub mod history;
pub mod hook;
pub mod init;
pub mod invite;
pub mod listen;
pub mod market;
pub mod mcp;
pub mod register;
pub mod reply;
pub mod say;
mod secret;
pub mod send;
pub mod serve;
mod span;
pub mod status;
pub mod uninstall;
pub mod unregister;
pub mod verify;
pub mod whoami;
