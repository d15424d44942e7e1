//! The check of TLS-ALPN-01 as an authority makes it (RFC 8737, section 3): a handshake, and what the certificate must have.

use crate::acme_authority::TlsClient;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;
use x509_cert::Certificate;
use x509_cert::der::asn1::OctetStringRef;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

const ACME_ALPN: &[u8] = b"acme-tls/1";
const ACME_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.31");

/// The answer to a challenge is self-signed, so only the signature of the handshake is verified.
#[derive(Debug)]
struct AnyIssuer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyIssuer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("the check uses TLS 1.3".into()))
    }

    /// By the key alone: the library refuses certificates with a critical extension that it does not know.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = Certificate::from_der(certificate).unwrap();
        let key = certificate.tbs_certificate().subject_public_key_info();
        let key = SubjectPublicKeyInfoDer::from(key.to_der().unwrap());
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A handshake with the protocol of the check, and nothing else.
pub fn connect_as_authority(at: SocketAddr, domain: &str) -> Result<TlsClient, String> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyIssuer(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ACME_ALPN.to_vec()];
    TlsClient::connect(at, domain, config)
}

/// Whether the hub at `at` proves that it has the account whose key authorization has this digest. The error is the type and
/// detail of the problem that an authority reports.
pub fn check_domain(
    at: SocketAddr,
    domain: &str,
    digest: &[u8],
) -> Result<(), (&'static str, String)> {
    let mut client = connect_as_authority(at, domain).map_err(|error| {
        let kind = match error.contains("refused (os error") {
            true => "connection",
            false => "tls",
        };
        (kind, error)
    })?;
    let wrong = |why: &str| Err(("incorrectResponse", why.to_owned()));
    if client.alpn().as_deref() != Some(ACME_ALPN) {
        return wrong("acme-tls/1 was not negotiated");
    }
    let certificate = Certificate::from_der(&client.certificate()).unwrap();
    let certificate = certificate.tbs_certificate();
    let names = certificate.get_extension::<SubjectAltName>();
    let Ok(Some((_, names))) = names else {
        return wrong("the certificate has no names");
    };
    let has_name = matches!(&names.0[..], [GeneralName::DnsName(name)] if name.as_str() == domain);
    if !has_name {
        return wrong("the certificate is not for this name alone");
    }
    let extensions = certificate.extensions().unwrap();
    let proof = extensions
        .iter()
        .find(|extension| extension.extn_id == ACME_IDENTIFIER);
    let Some(proof) = proof.filter(|proof| proof.critical) else {
        return wrong("there is no critical acmeIdentifier");
    };
    let expected = OctetStringRef::new(digest).unwrap().to_der().unwrap();
    if proof.extn_value.as_bytes() != expected {
        return wrong("acmeIdentifier has another digest");
    }
    // No request is answered on such a connection.
    client.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    match client.read_rest().is_empty() {
        true => Ok(()),
        false => wrong("the hub answered a request in acme-tls/1"),
    }
}
