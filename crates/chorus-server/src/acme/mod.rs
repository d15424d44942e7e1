//! Certificates of an authority that speaks ACME (RFC 8555), by the TLS-ALPN-01 challenge on the hub's own port (D-117).

mod acme_files;
pub mod acme_settings;
mod attempt_limit;
mod certificate_resolver;
mod directory_client;
mod issued_certificate;
mod order;
mod order_failure;
mod renewal;

pub use certificate_resolver::CertificateResolver;
pub use directory_client::DirectoryClient;
pub use renewal::CertificateRenewal;
