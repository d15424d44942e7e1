//! The wire types of every Chorus protocol with their parsers and limits. No I/O, no clock, no async.

pub mod agent_card;
pub mod agent_key;
pub mod channel;
pub mod console;
pub mod contact;
pub mod contract;
pub mod credits;
pub mod cursor;
pub mod envelope;
pub mod error;
pub mod event_chunk;
pub mod frame;
pub mod identity;
pub mod invite;
pub mod json;
pub mod limits;
pub mod list_page;
pub mod market;
pub mod message;
pub mod reach;
pub mod registration;
pub mod reply;
pub mod schemas;
pub mod secret;
pub mod sse;
mod string_enum;
pub mod time;
pub mod usage;

// The macros name this crate, also from inside of it.
extern crate self as chorus_wire;

pub use error::{Error, ErrorCode};

/// The version of the envelope, the only one that this hub accepts (ENV-02).
pub const CHORUS_VERSION: &str = "0.4";
/// The version of the agent card (ENV-17).
pub const CARD_VERSION: &str = "0.3";

pub type Result<T> = std::result::Result<T, Error>;
