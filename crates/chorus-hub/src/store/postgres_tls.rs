//! TLS to PostgreSQL: whose certificate is good enough, our own, and what a password is bound to (D-91).

use crate::pem;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Whose certificate is good enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateTrust {
    /// Anybody's: only listeners are kept out.
    AnyCertificate,
    /// One that a root of this file has signed, for whatever name.
    TrustedIssuer(PathBuf),
    /// One for the name that was dialled, signed by a root of this file or of the machine.
    MatchingName(Option<PathBuf>),
}

/// How TLS is spoken. Files are read for every connection, so that a certificate may be renewed while the hub runs.
pub(super) struct PostgresTls {
    pub trust: CertificateTrust,
    /// Our own certificate and its key, PEM.
    pub client_identity: Option<(PathBuf, PathBuf)>,
}

impl PostgresTls {
    pub fn build_connector(&self) -> Result<PostgresTlsConnector, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(self.build_verifier(&provider)?);
        let mut config = match &self.client_identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let own = pem::read_private_key("sslkey", key)?;
                let refused = |_| {
                    format!(
                        "sslcert {} and its sslkey do not go together",
                        certificate.display()
                    )
                };
                builder
                    .with_client_auth_cert(pem::read_certificates("sslcert", certificate)?, own)
                    .map_err(refused)?
            }
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(PostgresTlsConnector(Arc::new(config)))
    }

    fn build_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let verifier_from_file = |path: &Path| -> Result<Arc<WebPkiServerVerifier>, String> {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(pem::read_certificates("sslrootcert", path)?);
            let built =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build();
            built.map_err(|e| format!("sslrootcert {}: {e}", path.display()))
        };
        Ok(match &self.trust {
            CertificateTrust::AnyCertificate => Arc::new(LenientVerifier {
                issuer: None,
                provider: provider.clone(),
            }),
            CertificateTrust::TrustedIssuer(path) => Arc::new(LenientVerifier {
                issuer: Some(verifier_from_file(path)?),
                provider: provider.clone(),
            }),
            CertificateTrust::MatchingName(Some(path)) => verifier_from_file(path)?,
            CertificateTrust::MatchingName(None) => {
                let platform_verifier = rustls_platform_verifier::Verifier::new(provider.clone());
                Arc::new(platform_verifier.map_err(|e| {
                    format!("no root certificates on this machine ({e}): give an sslrootcert")
                })?)
            }
        })
    }
}

/// Forgives a certificate its name, and where there are no roots also its issuer; that the server has its key is always checked.
#[derive(Debug)]
struct LenientVerifier {
    issuer: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(issuer) = &self.issuer else {
            return Ok(ServerCertVerified::assertion());
        };
        match issuer.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is looked at last: whatever else there is to refuse has been.
            Err(refusal) if is_name_mismatch(&refusal) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn is_name_mismatch(refusal: &rustls::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(
        refusal,
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })
    )
}

/// The driver's way to TLS.
#[derive(Clone)]
pub(super) struct PostgresTlsConnector(Arc<ClientConfig>);

/// The same, for one server.
pub(super) struct TlsHandshake(Arc<ClientConfig>, String);

impl MakeTlsConnect<Socket> for PostgresTlsConnector {
    type Stream = EncryptedStream;
    type TlsConnect = TlsHandshake;
    type Error = String;

    /// Also asked where no TLS will be spoken: whether this is a name is seen when it is needed.
    fn make_tls_connect(&mut self, name: &str) -> Result<TlsHandshake, String> {
        Ok(TlsHandshake(self.0.clone(), name.to_owned()))
    }
}

impl TlsConnect<Socket> for TlsHandshake {
    type Stream = EncryptedStream;
    type Error = String;
    type Future = Pin<Box<dyn Future<Output = Result<EncryptedStream, String>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let TlsHandshake(config, host) = self;
        Box::pin(async move {
            let name = ServerName::try_from(host.clone())
                .map_err(|_| format!("{host} is no name of a server"))?;
            let connecting = tokio_rustls::TlsConnector::from(config)
                .connect(name, socket)
                .await;
            connecting
                .map(EncryptedStream)
                .map_err(|e| describe_tls_error(&host, &e))
        })
    }
}

/// What is wrong, for somebody who has the URL before them and not the standard.
fn describe_tls_error(host: &str, failure: &io::Error) -> String {
    let refusal = failure
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match refusal {
        Some(refusal) if is_name_mismatch(refusal) => {
            format!("the server's certificate is not for the name {host}")
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is signed by nobody we trust; sslrootcert=FILE says whom to trust".into()
        }
        Some(_) | None => failure.to_string(),
    }
}

/// A line that only the two ends can read.
pub(super) struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedStream {
    /// With it a password is of no use to whoever shows another certificate than the server's, where both ends have SCRAM.
    fn channel_binding(&self) -> ChannelBinding {
        let server_certificate = self
            .0
            .get_ref()
            .1
            .peer_certificates()
            .and_then(<[_]>::first);
        match server_certificate.and_then(|certificate| hash_server_end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// RFC 5929, `tls-server-end-point`: the certificate under the hash of its signature, SHA-256 where that is an older one.
fn hash_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const SEQUENCE: u8 = 0x30;
    let whole = read_der_value(SEQUENCE, certificate)?.0;
    let algorithm = read_der_value(SEQUENCE, read_der_value(SEQUENCE, whole)?.1)?.0;
    let (name, _) = read_der_value(0x06, algorithm)?;
    match name {
        // With RSA: SHA-256 and before it MD5 and SHA-1, SHA-384, SHA-512.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4 | 5 | 11] => {
            Some(Sha256::digest(certificate).to_vec())
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12] => {
            Some(Sha384::digest(certificate).to_vec())
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13] => {
            Some(Sha512::digest(certificate).to_vec())
        }
        // With ECDSA: SHA-1, SHA-256, SHA-384, SHA-512.
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => {
            Some(Sha256::digest(certificate).to_vec())
        }
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => Some(Sha384::digest(certificate).to_vec()),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => Some(Sha512::digest(certificate).to_vec()),
        // Others name their hash elsewhere, or have none: then nothing is bound.
        _ => None,
    }
}

/// What is inside a DER value with this tag, and what comes after it.
fn read_der_value(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = bytes.split_first().filter(|(first, _)| **first == tag)?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (length.into(), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (
                digits
                    .iter()
                    .fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
                rest,
            )
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As much of a certificate as is looked at: something, and the name of how it was signed.
    fn signed_by(name: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, inside: &[u8]| {
            let length = u16::try_from(inside.len()).unwrap().to_be_bytes();
            [&[tag, 0x82], &length[..], inside].concat()
        };
        let algorithm = wrap(0x30, &wrap(0x06, name));
        wrap(
            0x30,
            &[wrap(0x30, &[7; 300]), algorithm, wrap(0x03, &[1, 2, 3])].concat(),
        )
    }

    // RFC 5929, 4.1
    #[test]
    fn a_certificate_is_hashed_as_it_was_signed_and_by_sha256_where_that_is_weaker() {
        let (rsa, ecdsa) = (
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1],
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4],
        );
        for (name, size) in [
            ([&rsa[..], &[4]].concat(), Some(32)),
            ([&rsa[..], &[5]].concat(), Some(32)),
            ([&rsa[..], &[11]].concat(), Some(32)),
            ([&rsa[..], &[12]].concat(), Some(48)),
            ([&rsa[..], &[13]].concat(), Some(64)),
            ([&rsa[..], &[10]].concat(), None),
            ([&ecdsa[..], &[1]].concat(), Some(32)),
            ([&ecdsa[..], &[3, 2]].concat(), Some(32)),
            ([&ecdsa[..], &[3, 3]].concat(), Some(48)),
            ([&ecdsa[..], &[3, 4]].concat(), Some(64)),
            (vec![0x2b, 0x65, 0x70], None),
        ] {
            assert_eq!(
                hash_server_end_point(&signed_by(&name)).map(|hash| hash.len()),
                size,
                "{name:x?}"
            );
        }
    }

    #[test]
    fn what_is_cut_short_is_no_certificate() {
        let whole = signed_by(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        assert!(hash_server_end_point(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(hash_server_end_point(&whole[..length]), None, "{length}");
        }
    }
}
