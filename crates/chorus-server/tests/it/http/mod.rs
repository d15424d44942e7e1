//! The HTTP layer: invalid requests, limits, deadlines, disconnects, TLS and public documents.

mod chunked_streams;
mod client_disconnects;
mod connection_limit;
mod cursors;
mod deadlines;
mod invalid_requests;
mod rate_limit;
mod repeated_requests;
mod resumed_streams;
mod tls;
mod trusted_proxies;
mod web_pages;
mod well_known;
