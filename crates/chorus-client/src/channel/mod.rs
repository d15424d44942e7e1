//! Channel calls: the channels of a hub, and this agent's connection string, deliveries and callbacks.

mod callback;
mod channel_client;
mod connection;
mod deliveries;
mod delivery_signature;
mod outgoing_event;

pub use callback::{CallbackClient, CallbackStream};
pub use channel_client::{ChannelClient, NewMember};
pub use connection::SavedConnection;
pub use deliveries::{ReceivedDelivery, SavedCallback, callback_origin};
pub use delivery_signature::{DeliveryTrust, SigningSecret};
pub use outgoing_event::{OutgoingEvent, print_event};
