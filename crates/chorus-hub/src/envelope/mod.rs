//! Messages from one agent to another: sent, kept, delivered, acknowledged.

mod forward;
mod history;
mod relay;
mod respond;
mod send;
mod standing;

pub use crate::identity::Idempotency;
pub(crate) use forward::record as record_outcome;
pub use history::{Since, Sought, history, sought};
pub use relay::{Streamed, send_streaming};
pub use respond::respond;
pub use send::{Outcome, send};
pub use standing::standing;
