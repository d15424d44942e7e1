//! Builds the listener's TLS configuration: with a certificate from PEM files, or with certificates that change.

use rustls::{
    ConfigBuilder, ServerConfig, WantsVerifier,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::ResolvesServerCert,
};
use std::{fmt, path::Path, sync::Arc};

/// A certificate or key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path} for TLS: {cause}")]
pub struct TlsFileError {
    path: String,
    cause: String,
}

fn tls_error(path: &Path, cause: impl fmt::Display) -> TlsFileError {
    TlsFileError {
        path: path.display().to_string(),
        cause: cause.to_string(),
    }
}

/// What ALPN offers to clients: HTTP/1.1 only, because the connection loop serves nothing else.
const HTTP_ALPN: &[u8] = b"http/1.1";
/// What an authority offers, alone, when it checks that a name leads to this hub (RFC 8737).
pub const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// Builds the configuration for a certificate that stays as long as the server runs.
pub fn load_tls_config(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsFileError> {
    let certificates = read_certificates(chain)?;
    // The cause stays general, because a parser's message could repeat bytes of the key.
    let key_der = PrivateKeyDer::from_pem_file(key)
        .map_err(|_| tls_error(key, "it is no readable PEM private key"))?;
    let mut config = start_config()
        .with_no_client_auth()
        .with_single_cert(certificates, key_der)
        .map_err(|e| tls_error(key, e))?;
    config.alpn_protocols = vec![HTTP_ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// Builds the configuration for certificates that `resolver` chooses, and for the checks of an authority.
pub fn build_acme_config(resolver: Arc<dyn ResolvesServerCert>) -> Arc<ServerConfig> {
    let mut config = start_config()
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![HTTP_ALPN.to_vec(), ACME_TLS_ALPN.to_vec()];
    Arc::new(config)
}

/// Every certificate of a file; one without any is refused.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(|found| found.collect::<Result<Vec<_>, _>>())
        .map_err(|e| tls_error(path, e))?;
    match certificates.is_empty() {
        true => Err(tls_error(path, "it holds no certificate")),
        false => Ok(certificates),
    }
}

fn start_config() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks TLS 1.2 and 1.3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty.pem");
        std::fs::write(&path, "nothing here").unwrap();
        let error = load_tls_config(&path, &path).unwrap_err().to_string();
        assert!(
            error.contains("empty.pem") && error.contains("no certificate"),
            "{error}"
        );
        let missing = load_tls_config(&dir.path().join("missing.pem"), &path)
            .unwrap_err()
            .to_string();
        assert!(missing.contains("missing.pem"), "{missing}");
    }
}
