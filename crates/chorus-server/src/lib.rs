//! The HTTP server: routes, streams, MCP, the console and the OpenAPI document. It holds no rules and no SQL.

mod acme;
mod channel;
mod console;
mod discover;
mod envelope;
mod frame;
mod http;
mod identity;
mod market;
pub mod mcp;
mod openapi;
mod ops;
mod pages;
mod router;
pub mod schemas;
pub mod settings;

pub use crate::acme::acme_settings::{
    AcmeSettings, ContactEmail, DirectoryUrl, DomainName, MAX_DOMAINS,
};
pub use crate::http::allowed_origins::CorsOrigin;
pub use crate::http::trusted_network::TrustedNetwork;
pub use pages::{SKILL_TEXTS, TRANSPORT_TEXT};
pub use router::{openapi_document, published_schemas};
pub use settings::{RunningServer, ServerSettings, StartError, TlsSource, start_server};
