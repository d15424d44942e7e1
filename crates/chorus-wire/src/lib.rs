//! What travels: the words of every protocol, their grammars and their bounds. No I/O, no clock, no async.

pub mod agent_card;
pub mod channel;
pub mod cursor;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod identity;
pub mod json;
pub mod limits;
pub mod market;
pub mod message;
pub mod registration;
pub mod reply;
pub mod secret;
pub mod sse;
pub mod time;

pub use error::{Code, Error};

/// The envelope's version, the only one this hub speaks (ENV-02).
pub const CHORUS_VERSION: &str = "0.4";
/// The agent card's version (ENV-17).
pub const CARD_VERSION: &str = "0.3";

pub type Result<T> = std::result::Result<T, Error>;
