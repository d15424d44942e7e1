//! The doors: HTTP, streams, the contract and the pages. No rules and no SQL.

mod accept;
mod app_state;
mod auth;
mod body;
mod channel;
mod connection_limit;
mod console;
mod cors;
mod discover;
mod envelope;
mod frame;
mod front;
mod html;
mod idempotency;
mod markdown;
mod market;
pub mod mcp;
mod negotiate;
mod openapi;
mod ops;
mod query;
mod rate_limit;
mod reply;
mod router;
pub mod settings;
mod stream;
mod tls;
mod trusted_proxies;

pub use envelope::SKILL_TEXTS;
pub use settings::{RunningServer, ServerSettings, StartError, start_server};
pub use trusted_proxies::TrustedNetwork;
