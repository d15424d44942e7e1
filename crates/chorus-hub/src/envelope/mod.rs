//! Messages from one agent to another: sending, storing, delivering and acknowledging them.

mod conversations;
mod forward;
mod history;
mod relay;
mod respond;
mod send;
mod shown;
mod status;
mod wait;

pub use crate::identity::IdempotencyKey;
pub use conversations::{MessageFilter, find_messages, list_conversations};
pub(crate) use forward::record_interruption;
pub use history::{MessagePage, list_message_history, search_messages};
pub use relay::{StreamedSend, send_streaming};
pub use respond::respond_to_message;
pub use send::{RepeatedSend, SendOutcome, send_envelope};
pub use shown::{mark_all_shown, mark_shown};
pub use status::get_message_status;
pub use wait::{AwaitedAnswer, wait_for_answer, wait_until_shown};
