//! TLS to PostgreSQL: verification of the server's certificate, the client certificate, and SCRAM channel binding (D-91).

use crate::pem;
use const_oid::{ObjectIdentifier, db::rfc5912};
use der::{Reader, SliceReader, asn1::AnyRef};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use spki::AlgorithmIdentifierRef;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Which certificates of the server are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateTrust {
    /// Any certificate: this protects against eavesdropping only, not against a false server.
    AnyCertificate,
    /// A certificate issued by a root in this file, for any name.
    TrustedIssuer(PathBuf),
    /// A certificate for the host name of the URL, issued by a root in this file or of the machine.
    MatchingName(Option<PathBuf>),
}

/// The TLS settings of a URL. The files are read for every connection, so that a certificate can be renewed while the hub runs.
pub(super) struct PostgresTls {
    pub trust: CertificateTrust,
    /// The files of the client certificate and its key, in PEM.
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
                let private_key = pem::read_private_key("sslkey", key)?;
                let mismatch_error = |_| {
                    format!(
                        "sslcert {} and its sslkey do not go together",
                        certificate.display()
                    )
                };
                builder
                    .with_client_auth_cert(
                        pem::read_certificates("sslcert", certificate)?,
                        private_key,
                    )
                    .map_err(mismatch_error)?
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
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build();
            verifier.map_err(|e| format!("sslrootcert {}: {e}", path.display()))
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

/// Accepts a certificate for any name, and from any issuer if it has no roots. It always checks that the server has the
/// certificate's key.
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
            // The name is verified last, so everything else in the certificate is valid.
            Err(error) if is_name_mismatch(&error) => Ok(ServerCertVerified::assertion()),
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

fn is_name_mismatch(error: &rustls::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    matches!(
        error,
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })
    )
}

/// Creates the TLS connections of the driver.
#[derive(Clone)]
pub(super) struct PostgresTlsConnector(Arc<ClientConfig>);

/// A TLS connection to one server that is about to be made.
pub(super) struct TlsHandshake(Arc<ClientConfig>, String);

impl MakeTlsConnect<Socket> for PostgresTlsConnector {
    type Stream = EncryptedStream;
    type TlsConnect = TlsHandshake;
    type Error = String;

    /// The driver calls this also for connections without TLS, so `connect` validates the name.
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
            let connected = tokio_rustls::TlsConnector::from(config)
                .connect(name, socket)
                .await;
            connected
                .map(EncryptedStream)
                .map_err(|e| describe_tls_error(&host, &e))
        })
    }
}

/// The error in terms of the URL, for an operator who does not know the TLS standard.
fn describe_tls_error(host: &str, failure: &io::Error) -> String {
    let tls_error = failure
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls_error {
        Some(tls_error) if is_name_mismatch(tls_error) => {
            format!("the server's certificate is not for the name {host}")
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is signed by no authority that this hub trusts; sslrootcert=FILE names one to trust".into()
        }
        Some(_) | None => failure.to_string(),
    }
}

/// The encrypted connection to a server.
pub(super) struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedStream {
    /// Binds SCRAM authentication to the server's certificate: a man in the middle has another certificate and cannot relay it.
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

/// RFC 5929, `tls-server-end-point`: the hash of the certificate, with the hash function of its signature; SHA-256 instead of MD5
/// and SHA-1.
fn hash_server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Not in the database of `const_oid`.
    const ECDSA_WITH_SHA_1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");
    match read_signature_algorithm(certificate).ok()? {
        rfc5912::MD_5_WITH_RSA_ENCRYPTION
        | rfc5912::SHA_1_WITH_RSA_ENCRYPTION
        | rfc5912::SHA_256_WITH_RSA_ENCRYPTION
        | ECDSA_WITH_SHA_1
        | rfc5912::ECDSA_WITH_SHA_256 => Some(Sha256::digest(certificate).to_vec()),
        rfc5912::SHA_384_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_384 => {
            Some(Sha384::digest(certificate).to_vec())
        }
        rfc5912::SHA_512_WITH_RSA_ENCRYPTION | rfc5912::ECDSA_WITH_SHA_512 => {
            Some(Sha512::digest(certificate).to_vec())
        }
        // Other algorithms have their hash in the parameters, or none: then there is no channel binding.
        _ => None,
    }
}

/// RFC 5280, 4.1: a certificate is a sequence of the signed part, the algorithm and the signature. The signed part is not
/// parsed: a field that TLS accepts and a strict parser refuses, such as a long serial number, must not disable the binding.
fn read_signature_algorithm(certificate: &[u8]) -> der::Result<ObjectIdentifier> {
    let mut reader = SliceReader::new(certificate)?;
    let algorithm = reader.sequence(|fields| {
        fields.decode::<AnyRef<'_>>()?;
        let algorithm = fields.decode::<AlgorithmIdentifierRef<'_>>()?;
        fields.decode::<AnyRef<'_>>()?;
        Ok::<_, der::Error>(algorithm.oid)
    })?;
    reader.finish()?;
    Ok(algorithm)
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

    /// The outer structure of a certificate with this signature algorithm; the signed part is not valid.
    fn certificate_signed_by(algorithm_oid: &[u8]) -> Vec<u8> {
        let encode_der = |tag: u8, content: &[u8]| {
            let header = match u16::try_from(content.len()).unwrap().to_be_bytes() {
                [0, length @ 0..=0x7f] => vec![tag, length],
                [0, length] => vec![tag, 0x81, length],
                [high, low] => vec![tag, 0x82, high, low],
            };
            [&header, content].concat()
        };
        let signed_part = encode_der(0x30, &[7; 300]);
        let algorithm = encode_der(0x30, &encode_der(0x06, algorithm_oid));
        let signature = encode_der(0x03, &[1, 2, 3]);
        encode_der(0x30, &[signed_part, algorithm, signature].concat())
    }

    // RFC 5929, 4.1
    #[test]
    fn a_certificate_is_hashed_like_its_signature_and_with_sha256_if_that_is_weaker() {
        let rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
        let ecdsa = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
        for (algorithm_oid, size) in [
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
                hash_server_end_point(&certificate_signed_by(&algorithm_oid))
                    .map(|hash| hash.len()),
                size,
                "{algorithm_oid:x?}"
            );
        }
    }

    #[test]
    fn a_truncated_certificate_is_not_hashed() {
        let whole = certificate_signed_by(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        assert!(hash_server_end_point(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(hash_server_end_point(&whole[..length]), None, "{length}");
        }
    }
}
