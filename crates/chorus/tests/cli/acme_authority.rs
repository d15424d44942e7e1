//! A certificate authority for tests: a root, the certificates that it issues, and clients that trust it.

use chorus_hub::Clock;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use time::OffsetDateTime;
use x509_cert::der::{Decode, Encode};
use x509_cert::request::CertReq;

pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The public key of a request, which the library that issues cannot read by itself.
struct RequestedKey(Vec<u8>);

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn now_seconds() -> i64 {
    Clock::system().now().0 / 1_000_000
}

impl TestAuthority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "authority for tests");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub fn root_pem(&self) -> String {
        self.issuer.pem()
    }

    fn params(names: &[String], lifetime_seconds: i64) -> CertificateParams {
        let mut params = CertificateParams::new(names.to_vec()).unwrap();
        let at = |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap();
        params.not_before = at(now_seconds());
        params.not_after = at(now_seconds() + lifetime_seconds);
        params
    }

    /// Signs a request for exactly these names; the reason when it asks for others.
    pub fn issue(&self, csr: &[u8], names: &[String], lifetime: i64) -> Result<String, String> {
        let request = CertReq::from_der(csr).map_err(|e| e.to_string())?;
        let attributes = request.info.attributes.to_der().unwrap();
        for name in names {
            let is_asked = attributes
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            if !is_asked {
                return Err(format!("the request does not ask for {name}"));
            }
        }
        let key = request.info.public_key.subject_public_key;
        let key = RequestedKey(key.raw_bytes().to_vec());
        let certificate = Self::params(names, lifetime).signed_by(&key, &self.issuer);
        Ok(certificate.unwrap().pem() + &self.root_pem())
    }

    /// A certificate and its key for a hub, valid between these seconds from now.
    pub fn sign_for(&self, host: &str, from: i64, until: i64) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = Self::params(&[host.to_owned()], 0);
        let at = |seconds| OffsetDateTime::from_unix_timestamp(now_seconds() + seconds).unwrap();
        params.not_before = at(from);
        params.not_after = at(until);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// TLS for the authority's own directory at an address.
    pub fn directory_tls(&self, host: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = Self::params(&[host.to_owned()], 3600);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into());
        Arc::new(config.unwrap())
    }

    /// Connects as a client does that trusts this authority and asks for `name`.
    pub fn connect(&self, at: SocketAddr, name: &str) -> Result<TlsClient, String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsClient::connect(at, name, config)
    }
}

/// A TLS connection to a hub.
pub struct TlsClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    pub fn connect(at: SocketAddr, name: &str, config: ClientConfig) -> Result<Self, String> {
        let socket = TcpStream::connect(at).map_err(|e| e.to_string())?;
        socket
            .set_read_timeout(Some(crate::actors::TIMEOUT))
            .unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(tls, socket);
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .map_err(|e| e.to_string())?;
        }
        Ok(Self(stream))
    }

    pub fn certificate(&self) -> CertificateDer<'static> {
        self.0.conn.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    }

    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.0.conn.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// Sends a request on this connection, which stays open, and reads the body of the answer.
    pub fn get(&mut self, path: &str, host: &str) -> (u16, serde_json::Value) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.0.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// What the other side still says; empty when it has closed.
    pub fn read_rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest);
        rest
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }
}
