//! The rules of the hub: who may do what, and what follows. No HTTP server. Each module may use those above it in
//! ARCHITECTURE.md.

pub mod bus;
pub mod channel;
pub mod clock;
mod clock_watch;
mod cluster;
mod context;
pub mod delivery;
pub mod envelope;
pub mod frame;
pub mod hub;
pub mod idempotent_request;
pub mod identity;
pub mod lifecycle;
pub mod limits;
pub mod market;
mod memory_bounds;
pub mod ops;
mod pem;
pub mod random;
mod seal;
mod settings;
pub mod simulation;
mod start_error;
mod store;
mod stream_end;
pub mod telemetry;

pub use clock::Clock;
pub use context::HubContext;
pub use hub::Hub;
pub use identity::Principal;
pub use memory_bounds::{MemoryBounds, PageCaches};
pub use settings::{BusFiles, HubOptions};
pub use store::MemberId;

pub type Result<T> = chorus_wire::Result<T>;
