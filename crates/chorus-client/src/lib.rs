//! Client library: calls to a hub, streams that resume, direct exchange between agents, and local files.

pub mod allowed_peers;
pub mod backoff;
pub mod channel;
mod contact;
pub mod direct;
pub mod envelope;
pub mod error;
pub mod event_stream;
pub mod files;
pub mod frame;
pub mod http;
pub mod hub_paths;
pub mod identity;
pub mod inbox_store;
pub mod keys;
pub mod limits;
pub mod market;
pub mod mcp;
pub mod ops;
mod route_templates;
mod wait;

pub use error::{Error, ErrorResponse};
pub use http::HubClient;

pub type Result<T> = std::result::Result<T, Error>;
