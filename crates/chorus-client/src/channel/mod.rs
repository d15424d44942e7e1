//! Channels from the outside: rooms of a hub, and an agent's own part in the rooms of anybody.

mod callback;
mod deliveries;
mod event;
mod host;
mod rooms;

pub use callback::{Callback, Streaming};
pub use deliveries::{Delivered, Kept};
pub use event::{Say, print};
pub use host::Connected;
pub use rooms::{Guest, Room};
