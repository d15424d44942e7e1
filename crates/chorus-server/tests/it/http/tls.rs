//! A hub that serves TLS.

use crate::support::hub::Hub;
use chorus_server::TlsSource;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A certificate for 127.0.0.1 that lives as long as the story; `None` where there is no openssl to make it.
fn certificate(dir: &Path) -> Option<()> {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(dir.join("key.pem"))
        .arg("-out")
        .arg(dir.join("cert.pem"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    made.is_ok_and(|status| status.success()).then_some(())
}

/// `--tls-cert`, `--tls-key`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_with_a_certificate_speaks_tls_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    if certificate(dir.path()).is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "openssl is needed to make a certificate"
        );
        eprintln!("skipped: there is no openssl");
        return;
    }
    let pair = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let mut hub = Hub::sqlite(|set| {
        set.tls = Some(TlsSource::Files {
            chain: pair.0.clone(),
            key: pair.1.clone(),
        })
    })
    .await;
    assert!(hub.url.starts_with("https://"), "{}", hub.url);
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&pair.0).unwrap())
        .unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    hub.http = reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap();
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    alice
        .send_expecting(&bob.id, "hello", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["hello"]);
    let plain = hub
        .http
        .get(hub.url.replace("https", "http") + "/health")
        .send()
        .await;
    assert!(plain.is_err() || plain.is_ok_and(|answer| answer.status() == 400));
}
