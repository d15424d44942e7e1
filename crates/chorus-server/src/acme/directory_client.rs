//! Sends the requests of the ACME library with the hub's own HTTP client, within limits.

use super::acme_settings::AcmeSettings;
use crate::http::tls::read_certificates;
use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Max time for one request to an authority; they answer within a second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Max time to connect, so that an address without a machine is told apart from a slow answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Max bytes of an answer. A certificate chain has some thousands.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// The connection to an authority.
#[derive(Clone)]
pub struct DirectoryClient {
    http: reqwest::Client,
    /// What the last refusal with 429 or 503 asked to wait.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl DirectoryClient {
    /// Reads the root certificates, so a wrong file stops the start.
    pub fn new(settings: &AcmeSettings) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(build_tls_config(settings)?)
            .https_only(settings.directory.is_https())
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .http1_only()
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self {
            http,
            retry_after: Arc::default(),
        })
    }

    /// What the authority asked to wait since the last call.
    pub fn take_retry_after(&self) -> Option<Duration> {
        self.retry_after
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    async fn send_request(
        self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, Error> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await;
        let mut answer = self
            .http
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body.to_bytes())
            .send()
            .await
            .map_err(request_error)?;
        if is_refusal_for_now(answer.status()) {
            *self
                .retry_after
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = parse_retry_after(answer.headers());
        }
        let mut bytes = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(request_error)? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(Error::Str(
                    "a shorter answer: this one is longer than any of an authority",
                ));
            }
            bytes.extend_from_slice(&chunk);
        }
        let mut response = Response::new(());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(BytesResponse {
            parts: response.into_parts().0,
            body: Box::new(bytes.freeze()),
        })
    }
}

impl HttpClient for DirectoryClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(self.clone().send_request(request))
    }
}

fn request_error(error: reqwest::Error) -> Error {
    Error::Other(Box::new(error))
}

fn is_refusal_for_now(status: StatusCode) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ]
    .contains(&status)
}

/// The number of seconds; a date is left to the hub's own backoff, which is longer than an hour for a rate limit.
fn parse_retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    Some(Duration::from_secs(seconds.parse::<u32>().ok()?.into()))
}

/// Trusts the given roots only, or those of the machine.
fn build_tls_config(settings: &AcmeSettings) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    if let Some(file) = &settings.directory_roots {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(read_certificates(file).map_err(|e| e.to_string())?);
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|e| {
        format!("this machine has no root certificates ({e}): install the package ca-certificates, or give --tls-acme-ca")
    })?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_in_seconds() {
        let wait = |text: &'static str| {
            let mut headers = header::HeaderMap::new();
            headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static(text));
            parse_retry_after(&headers)
        };
        assert_eq!(wait("90"), Some(Duration::from_secs(90)));
        assert_eq!(wait("99999999999"), None);
        assert_eq!(wait("soon"), None);
    }
}
