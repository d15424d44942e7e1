//! The same words from the other side: calls to a hub, resuming streams, direct exchange, local files.

pub mod backoff;
pub mod channel;
pub mod desk;
pub mod direct;
pub mod envelope;
pub mod error;
pub mod files;
pub mod frame;
pub mod http;
pub mod identity;
pub mod limits;
pub mod market;
pub mod mcp;
pub mod ops;
pub mod paths;
pub mod stream;

pub use error::{Error, Refusal};
pub use http::Client;

pub type Result<T> = std::result::Result<T, Error>;
