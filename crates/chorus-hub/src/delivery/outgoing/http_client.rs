//! Builds the HTTP client for webhooks, without redirects, proxies, cookies, decompression and
//! retries.

use super::name_resolver::GuardedResolver;
use chorus_wire::limits;
use reqwest::Client;
use rustls::{ClientConfig, RootCertStore, crypto::CryptoProvider};
use std::{sync::Arc, time::Duration};

/// How long an idle connection is kept: less than the five seconds after which common servers close
/// one, so that a request does not collide with the close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Max idle connections that are kept to one host.
const MAX_IDLE_PER_HOST: usize = 8;

/// Builds the client: no redirects (the target would not be checked), no proxies (they would
/// resolve the name themselves), no cookies, no decompression (64 KiB stay 64 KiB), no retries. The time to connect is limited on
/// its own, because a job may wait much longer for its answer.
pub fn build_client(resolver: GuardedResolver, connect_timeout: Duration) -> Client {
    Client::builder()
        .tls_backend_preconfigured(build_tls_config())
        .dns_resolver(resolver)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(connect_timeout)
        .http1_only()
        .http1_max_headers(limits::HEADER_LINES)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
        .build()
        .expect("no setting above depends on anything outside the program")
}

/// Uses the machine's root certificates. A machine without any still delivers over http; https then
/// fails as an untrusted certificate.
pub fn build_tls_config() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config_builder = || {
        ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
    };
    match system_root_verifier(&provider) {
        Ok(verifier) => config_builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth(),
        Err(cause) => {
            tracing::warn!(%cause, "no root certificates on this machine: webhooks over https will fail");
            config_builder()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    }
}

fn system_root_verifier(
    provider: &Arc<CryptoProvider>,
) -> Result<rustls_platform_verifier::Verifier, rustls::Error> {
    rustls_platform_verifier::Verifier::new(provider.clone())
}
