//! Channels from the outside: rooms of a hub, and an agent's own part in the rooms of anybody.

mod callback;
mod channel_client;
mod connection;
mod deliveries;
mod outgoing_event;

pub use callback::{CallbackClient, CallbackStream};
pub use channel_client::{ChannelClient, NewMember};
pub use connection::SavedConnection;
pub use deliveries::{ReceivedDelivery, SavedCallback};
pub use outgoing_event::{OutgoingEvent, print_event};
