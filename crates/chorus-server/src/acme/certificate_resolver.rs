//! Chooses the certificate of a TLS handshake: the hub's own, or the answer to a challenge of the authority (RFC 8737).

use crate::http::tls::ACME_TLS_ALPN;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The certificates of this hub. New handshakes use what was installed last; open connections keep theirs.
#[derive(Debug, Default)]
pub struct CertificateResolver {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    /// Answers to open challenges, by name.
    challenges: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

impl CertificateResolver {
    pub fn install_certificate(&self, certificate: Arc<CertifiedKey>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(certificate);
    }

    /// Answers the challenge for `domain` until the returned guard is dropped.
    pub fn answer_challenge(
        self: &Arc<Self>,
        domain: &str,
        digest: &[u8],
    ) -> Result<ChallengeGuard, String> {
        let certificate = build_challenge_certificate(domain, digest)?;
        self.challenges
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(domain.to_owned(), certificate);
        Ok(ChallengeGuard {
            resolver: self.clone(),
            domain: domain.to_owned(),
        })
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let offered: Vec<&[u8]> = hello.alpn().into_iter().flatten().collect();
        if offered == [ACME_TLS_ALPN] {
            let challenges = self
                .challenges
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            return challenges.get(hello.server_name()?).cloned();
        }
        // Any name gets it: a client that asked for another one sees which this is, and refuses it.
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Removes the answer to a challenge when it is dropped, however the order ended.
pub struct ChallengeGuard {
    resolver: Arc<CertificateResolver>,
    domain: String,
}

impl Drop for ChallengeGuard {
    fn drop(&mut self) {
        self.resolver
            .challenges
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.domain);
    }
}

/// A self-signed certificate for the name, with the digest of the key authorization in the extension that RFC 8737 defines.
fn build_challenge_certificate(domain: &str, digest: &[u8]) -> Result<Arc<CertifiedKey>, String> {
    let mut params = CertificateParams::new([domain.to_owned()]).map_err(|e| e.to_string())?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(|e| e.to_string())?;
    let certificate = params.self_signed(&key).map_err(|e| e.to_string())?;
    let key_der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // Not `from_der`, which compares key and certificate, and refuses a certificate with a critical extension that it does not know.
    let key = ring::default_provider()
        .key_provider
        .load_private_key(key_der)
        .map_err(|e| e.to_string())?;
    let chain = vec![certificate.der().clone()];
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}
