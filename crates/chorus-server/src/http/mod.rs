//! Everything around a handler: connections, the middleware of every request, extractors, replies and open streams.
//!
//! Nothing here knows a protocol; the handler modules import from here, never the other way round.

pub mod accept;
pub mod admission;
pub mod allowed_origins;
mod answer_memory;
pub mod api_error;
pub mod app_state;
pub mod auth;
pub mod body;
pub mod callback_slots;
pub mod certificate_status;
pub mod client_presence;
mod connection;
pub mod connection_limit;
mod cors;
pub mod directory_access;
mod drain_rate;
mod draining_body;
mod exchange_position;
mod forwarded_header;
pub mod front;
mod held_bytes;
pub mod idempotency;
pub mod idempotent_routes;
pub mod negotiate;
pub mod next_handler;
pub mod path_params;
pub mod query;
pub mod rate_limit;
mod raw_refusal;
pub mod reply;
pub mod request_metrics;
pub mod request_service;
mod request_span;
pub mod resume;
pub mod route_scopes;
pub mod stream;
pub mod tls;
pub mod trusted_network;
mod trusted_proxies;
mod uninterrupted_write;
pub mod waiting_calls;
mod watched_socket;
