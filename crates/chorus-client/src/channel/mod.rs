//! Channel calls: the channels of a hub, and this agent's connection string, deliveries and callbacks.

mod callback;
mod channel_client;
mod connection;
mod deliveries;
mod outgoing_event;

pub use callback::{CallbackClient, CallbackStream};
pub use channel_client::{ChannelClient, NewMember};
pub use connection::SavedConnection;
pub use deliveries::{ReceivedDelivery, SavedCallback, callback_origin};
pub use outgoing_event::{OutgoingEvent, print_event};
