//! What is allowed and what follows: the rules of the hub, without an HTTP server and without routes.

mod bus;
pub mod channel;
pub mod clock;
pub mod delivery;
pub mod envelope;
pub mod frame;
pub mod hub;
pub mod identity;
mod joined;
pub mod market;
pub mod ops;
mod pem;
mod store;

pub use bus::BusFiles;
pub use clock::Clock;
pub use hub::{Hub, Options};
pub use identity::Principal;

pub type Result<T> = chorus_wire::Result<T>;
