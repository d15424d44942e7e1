//! One file per command.

pub mod admin;
pub mod channel;
pub mod completions;
pub mod connection;
pub mod demo;
pub mod discover;
mod duration;
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
pub mod schema;
mod secret_url;
pub mod send;
pub mod serve;
pub mod status;
pub mod uninstall;
pub mod unregister;
pub mod verify;
pub mod whoami;
