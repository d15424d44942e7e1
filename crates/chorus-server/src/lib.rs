//! The doors: HTTP, streams, the contract and the pages. No rules and no SQL.

mod accept;
mod auth;
mod body;
mod channel;
mod console;
mod contract;
mod cors;
mod discover;
mod doors;
mod envelope;
mod frame;
mod front;
mod limit;
mod markdown;
mod market;
pub mod mcp;
mod negotiate;
mod once;
mod ops;
mod pages;
mod proxies;
mod query;
mod reply;
mod router;
pub mod settings;
mod stream;
mod tls;
mod turned_away;

pub use envelope::SKILLS;
pub use proxies::Network;
pub use settings::{Running, Settings, StartError, start};
