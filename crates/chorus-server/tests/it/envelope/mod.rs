//! Messages: sending, delivery to inboxes and webhooks, history, receipts and replays.

mod a2a;
mod catch_up;
mod conversations;
mod history;
mod idempotency;
mod inbox;
mod load;
mod receipts;
mod send_outcomes;
mod shown;
mod signed_webhooks;
mod ssrf_guard;
mod streamed_replies;
mod validation;
mod webhook;
