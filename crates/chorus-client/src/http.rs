//! HTTP calls to a hub: authentication, timeouts, limited response size, retries and errors.

use crate::hub_paths::HubPaths;
use crate::{Error, ErrorResponse, Result, backoff::Backoff, limits, route_templates};
use chorus_wire::{reply::ReplyMetadata, secret::Secret};
use reqwest::{Method, header};
use serde::{Deserialize, de::DeserializeOwned};
use std::{borrow::Cow, sync::Arc, time::Duration};
use tokio::sync::OnceCell;

/// A client of one hub with one key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HubClient {
    http: reqwest::Client,
    base_url: String,
    /// The URL as errors show it: an endpoint's path or query may hold a secret, its origin does not.
    display_url: String,
    key: Option<Secret>,
    paths: Arc<OnceCell<HubPaths>>,
    /// The backoff between attempts of retried calls.
    pub backoff: Backoff,
}

/// A response before its body is parsed.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub body: Vec<u8>,
    retry_after: Option<Duration>,
    /// The `after` of the next page, encoded, if the list has one.
    pub next_cursor: Option<String>,
}

/// One request: the parts that differ from call to call.
#[derive(Clone, Debug)]
pub struct ApiCall {
    pub method: Method,
    pub path: String,
    pub body: Option<String>,
    pub idempotency_key: Option<String>,
    /// Further headers, such as the session.
    pub headers: Vec<(&'static str, String)>,
}

impl ApiCall {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            idempotency_key: None,
            headers: Vec::new(),
        }
    }

    pub fn post(path: impl Into<String>, body: String) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }

    pub fn put(path: impl Into<String>, body: String) -> Self {
        Self {
            method: Method::PUT,
            ..Self::post(path, body)
        }
    }

    pub fn patch(path: impl Into<String>, body: String) -> Self {
        Self {
            method: Method::PATCH,
            ..Self::post(path, body)
        }
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }
}

/// 128 random bits as hex, so that no two keys are equal.
pub(crate) fn new_idempotency_key() -> String {
    format!("{:032x}", rand::random::<u128>())
}

impl HubClient {
    /// A client of the hub at the URL `hub`, authenticated with `key`.
    pub fn new(hub: &str, key: Option<Secret>) -> Result<Self> {
        let base_url = parse_base_url(hub)?;
        Self::with_base_url(base_url.clone(), base_url, key)
    }

    /// A client of a peer's receive endpoint, with the URL exactly as given.
    pub(crate) fn for_endpoint(url: &str) -> Result<Self> {
        let parsed = parse_plain_url(url)?;
        Self::with_endpoint_url(&parsed)
    }

    /// A client of a callback, which is opaque: it may have user information, which HTTP sends as a header (CHN-15).
    pub(crate) fn for_callback(url: &str) -> Result<Self> {
        let parsed = url::Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let parsed =
            parsed.ok_or_else(|| Error::Input("a callback is an http or https URL".into()))?;
        Self::with_endpoint_url(&parsed)
    }

    fn with_endpoint_url(parsed: &url::Url) -> Result<Self> {
        Self::with_base_url(
            parsed.as_str().to_owned(),
            parsed.origin().ascii_serialization(),
            None,
        )
    }

    fn with_base_url(base_url: String, display_url: String, key: Option<Secret>) -> Result<Self> {
        // Fails when another client installed the same provider first, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(limits::CONNECT_TIMEOUT)
            // A redirect would send the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| Error::Transport(innermost_message(&e)))?;
        Ok(Self {
            http,
            base_url,
            display_url,
            key,
            paths: Arc::default(),
            backoff: Backoff::default(),
        })
    }

    /// The hub's URL without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The hub's paths, fetched once when first needed.
    pub async fn fetch_paths(&self) -> Result<&HubPaths> {
        let found = self.paths.get_or_try_init(|| async {
            match self
                .send_exact(ApiCall::get("/.well-known/chorus.json"))
                .await
            {
                Ok(answer) if answer.status == 200 => Ok(HubPaths::parse_document(&answer.body)),
                Ok(_) => Ok(HubPaths::default()),
                Err(error) => Err(error),
            }
        });
        found.await
    }

    /// The hub's paths, or the defaults without an answer: a stream outlasts a hub that is unreachable.
    pub(crate) async fn fetch_paths_or_default(&self) -> HubPaths {
        self.fetch_paths().await.cloned().unwrap_or_default()
    }

    /// The path of a call as the hub announces it (TRN-51).
    pub(crate) async fn translate_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if !route_templates::is_known_route(path) {
            return Cow::Borrowed(path);
        }
        self.fetch_paths_or_default()
            .await
            .announced
            .translate_path(path)
            .map_or(Cow::Borrowed(path), Cow::Owned)
    }

    /// Builds a request with the key and without a timeout on its body.
    pub(crate) fn build_request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base_url));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    /// Sends one call and returns the answer with any status; only a broken connection or a too long answer is an error.
    pub async fn send_call(&self, mut call: ApiCall) -> Result<HttpAnswer> {
        if let Cow::Owned(announced) = self.translate_path(&call.path).await {
            call.path = announced;
        }
        self.send_exact(call).await
    }

    /// The same with the path as it is.
    async fn send_exact(&self, call: ApiCall) -> Result<HttpAnswer> {
        let mut request = self.build_request(call.method, &call.path);
        if call.headers.iter().all(|(name, _)| *name != "Accept") {
            request = request.header(header::ACCEPT, "application/json");
        }
        if let Some(body) = call.body {
            request = request
                .header(header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        if let Some(key) = call.idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let exchange = async {
            let response = request.send().await.map_err(|e| self.transport_error(&e))?;
            self.read_response(response).await
        };
        let timeout_error = || {
            Error::Transport(format!(
                "{} did not answer within {} s",
                self.display_url,
                limits::CALL_TIMEOUT.as_secs()
            ))
        };
        tokio::time::timeout(limits::CALL_TIMEOUT, exchange)
            .await
            .map_err(|_| timeout_error())?
    }

    /// Sends one call and returns the `data` of its answer.
    pub async fn fetch_data<T: DeserializeOwned>(&self, call: ApiCall) -> Result<T> {
        Ok(self.send_call(call).await?.into_data::<T>()?.0)
    }

    /// Sends an idempotent call whose answer is not JSON, and returns the octets.
    pub(crate) async fn fetch_bytes(&self, call: ApiCall) -> Result<Vec<u8>> {
        let call = ApiCall {
            headers: vec![("Accept", "*/*".into())],
            ..call
        };
        Ok(self.send_with_retry(call).await?.body)
    }

    /// Sends a call that may be repeated, and returns the `data` of its answer.
    pub async fn fetch_data_with_retry<T: DeserializeOwned>(&self, call: ApiCall) -> Result<T> {
        Ok(self.send_with_retry(call).await?.into_data::<T>()?.0)
    }

    /// Sends a call; retries connection errors and transient refusals, up to [`limits::MAX_ATTEMPTS`]. All attempts of a POST
    /// have one `Idempotency-Key`, so that the hub carries it out once.
    pub async fn send_with_retry(&self, mut call: ApiCall) -> Result<HttpAnswer> {
        if call.method == Method::POST && call.idempotency_key.is_none() {
            call.idempotency_key = Some(new_idempotency_key());
        }
        let mut failures = 0;
        loop {
            let error = match self
                .send_call(call.clone())
                .await
                .and_then(HttpAnswer::require_success)
            {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let retry_after = error
                .error_response()
                .and_then(|refusal| refusal.retry_after)
                .unwrap_or_default();
            if !error.is_transient()
                || failures >= limits::MAX_ATTEMPTS
                || retry_after > limits::MAX_RETRY_AFTER
            {
                return Err(error);
            }
            let wait = self.backoff.delay_after(failures).max(retry_after);
            tracing::debug!(%error, ?wait, "call failed, retrying");
            tokio::time::sleep(wait).await;
        }
    }

    pub(crate) async fn read_response(
        &self,
        mut response: reqwest::Response,
    ) -> Result<HttpAnswer> {
        let status = response.status().as_u16();
        let retry_after = parse_retry_after(response.headers());
        let next_cursor = parse_next_cursor(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|e| self.transport_error(&e))?
        {
            if body.len() + chunk.len() > limits::MAX_ANSWER_BYTES {
                return Err(Error::Answer(format!(
                    "it is longer than {} bytes",
                    limits::MAX_ANSWER_BYTES
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(HttpAnswer {
            status,
            body,
            retry_after,
            next_cursor,
        })
    }

    pub(crate) fn transport_error(&self, error: &reqwest::Error) -> Error {
        Error::Transport(format!(
            "cannot reach {}: {}",
            self.display_url,
            innermost_message(error)
        ))
    }
}

#[derive(Deserialize)]
struct DataBody<T> {
    data: T,
    metadata: Option<ReplyMetadata>,
}

/// An error body: wrapped as in documents 001 and 002, bare as for frames, or the market's (R-13, FRM-83, R-65).
#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorBody {
    Wrapped {
        error: ErrorFields,
    },
    Bare(ErrorFields),
    Market {
        error_code: String,
        error_message: String,
    },
}

#[derive(Deserialize)]
struct ErrorFields {
    code: String,
    message: String,
}

impl HttpAnswer {
    /// Returns the answer if it is a 2xx, its error otherwise.
    pub fn require_success(self) -> Result<Self> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(Error::Refused(self.error_response()))
        }
    }

    /// The answer's `data`, and the timestamp of its `metadata`.
    pub fn into_data<T: DeserializeOwned>(self) -> Result<(T, Option<String>)> {
        let accepted = self.require_success()?;
        let wrapped: DataBody<T> =
            serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))?;
        Ok((wrapped.data, wrapped.metadata.map(|m| m.timestamp)))
    }

    /// The whole body, for routes that do not wrap it in `data`.
    pub fn into_bare<T: DeserializeOwned>(self) -> Result<T> {
        let accepted = self.require_success()?;
        serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))
    }

    /// A bare body, or the `data` of a wrapped one: public hubs wrap what document 002 prints bare.
    pub fn into_bare_or_data<T: DeserializeOwned>(self) -> Result<T> {
        let accepted = self.require_success()?;
        if let Ok(wrapped) = serde_json::from_slice::<DataBody<T>>(&accepted.body) {
            return Ok(wrapped.data);
        }
        serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))
    }

    /// The answer's `data`, and the cursor of the next page.
    pub fn into_page<T: DeserializeOwned>(self) -> Result<(T, Option<String>)> {
        let accepted = self.require_success()?;
        let wrapped: DataBody<T> =
            serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))?;
        Ok((wrapped.data, wrapped.metadata.and_then(|m| m.next)))
    }

    fn error_response(&self) -> ErrorResponse {
        let (code, message) = match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(ErrorBody::Wrapped { error } | ErrorBody::Bare(error)) => {
                (error.code, error.message)
            }
            Ok(ErrorBody::Market {
                error_code,
                error_message,
            }) => (error_code, error_message),
            Err(_) => (
                format!("HTTP_{}", self.status),
                format!("the hub answered with status {}", self.status),
            ),
        };
        ErrorResponse {
            status: self.status,
            code,
            message,
            retry_after: self.retry_after,
        }
    }
}

fn parse_retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// The `after` of the link to the next page, as it stands in the link.
fn parse_next_cursor(headers: &header::HeaderMap) -> Option<String> {
    let link = headers.get(header::LINK)?.to_str().ok()?;
    let (target, relation) = link.trim().strip_prefix('<')?.split_once('>')?;
    let query = target.split_once('?')?.1;
    let cursor = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("after="));
    cursor
        .filter(|_| relation.contains("rel=\"next\""))
        .map(str::to_owned)
}

/// Parses an absolute http or https URL without user information.
fn parse_plain_url(text: &str) -> Result<url::Url> {
    let url_error = || {
        Error::Input(
            "a URL here is http:// or https:// with a host and without a user or fragment".into(),
        )
    };
    let url = url::Url::parse(text).map_err(|_| url_error())?;
    let is_plain =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty();
    if is_plain && url.password().is_none() && url.fragment().is_none() {
        Ok(url)
    } else {
        Err(url_error())
    }
}

/// Parses the hub's URL, the prefix of every request URL.
pub(crate) fn parse_base_url(hub: &str) -> Result<String> {
    let url = parse_plain_url(hub)?;
    if url.query().is_some() {
        return Err(Error::Input("the hub's URL has no query".into()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Percent-encodes one path segment, so that it is safe to append.
pub(crate) fn encode_segment(text: &str) -> String {
    let is_plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'@' | b':');
    let is_only_dots = text.bytes().all(|b| b == b'.');
    let encode_byte = |b: u8| {
        if is_plain(b) && !is_only_dots {
            char::from(b).to_string()
        } else {
            format!("%{b:02X}")
        }
    };
    text.bytes().map(encode_byte).collect()
}

/// The innermost error message, without the URL: its query may hold a token.
pub(crate) fn innermost_message(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests;
