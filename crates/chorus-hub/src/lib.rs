//! What is allowed and what follows: the rules of the hub, without an HTTP server and without routes.

pub mod channel;
pub mod clock;
mod cluster;
pub mod delivery;
pub mod envelope;
pub mod frame;
pub mod hub;
mod hub_callbacks;
pub mod identity;
pub mod market;
pub mod ops;
mod pem;
mod store;

pub use clock::Clock;
pub use cluster::BusFiles;
pub use hub::{Hub, HubOptions};
pub use identity::Principal;

pub type Result<T> = chorus_wire::Result<T>;
