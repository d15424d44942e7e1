//! Loads the TLS certificate chain and key from PEM files; an error names the file.

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
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

/// Builds the listener's TLS configuration. ALPN offers HTTP/1.1 only, because the connection loop serves nothing else.
pub fn load_tls_config(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsFileError> {
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(|found| found.collect::<Result<Vec<_>, _>>())
        .map_err(|e| tls_error(chain, e))?;
    if certificates.is_empty() {
        return Err(tls_error(chain, "it holds no certificate"));
    }
    // The cause stays general, because a parser's message could repeat bytes of the key.
    let key_der = PrivateKeyDer::from_pem_file(key)
        .map_err(|_| tls_error(key, "it is no readable PEM private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| tls_error(chain, e))?
        .with_no_client_auth()
        .with_single_cert(certificates, key_der)
        .map_err(|e| tls_error(key, e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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
