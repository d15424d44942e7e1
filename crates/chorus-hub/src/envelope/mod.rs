//! Messages from one agent to another: sent, kept, delivered, acknowledged.

mod forward;
mod history;
mod relay;
mod respond;
mod send;
mod standing;

pub(crate) use forward::record as record_outcome;
pub use history::{Since, history};
pub use relay::{Streamed, send_streaming};
pub use respond::respond;
pub use send::{Idempotency, Outcome, send};
pub use standing::standing;
