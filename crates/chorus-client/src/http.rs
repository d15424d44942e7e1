//! One call to a hub: its key, its deadlines, its bounded answer, its error.

use crate::{Error, Refusal, Result, backoff::Backoff, limits, paths::Paths};
use chorus_wire::{reply::Metadata, secret::Secret};
use reqwest::{Method, header};
use serde::{Deserialize, de::DeserializeOwned};
use std::{sync::Arc, time::Duration};
use tokio::sync::OnceCell;

/// A hub as one caller sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    /// What errors call the other side: an endpoint's path or query may hold a secret, its origin does not.
    shown: String,
    key: Option<Secret>,
    paths: Arc<OnceCell<Paths>>,
    /// Between attempts of calls that are repeated.
    pub backoff: Backoff,
}

/// What came back, before it is read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    retry_after: Option<Duration>,
}

/// One request. Only what differs from call to call.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub body: Option<String>,
    pub idempotency_key: Option<String>,
    /// What else the call says about itself, such as its session.
    pub headers: Vec<(&'static str, String)>,
}

impl Call {
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

impl Client {
    /// A hub, as `key` sees it.
    pub fn new(hub: &str, key: Option<Secret>) -> Result<Self> {
        let base = base(hub)?;
        Self::with(base.clone(), base, key)
    }

    /// A peer's receive endpoint: the URL exactly as it was given.
    pub(crate) fn endpoint(url: &str) -> Result<Self> {
        let parsed = plain_url(url)?;
        Self::with(
            parsed.as_str().to_owned(),
            parsed.origin().ascii_serialization(),
            None,
        )
    }

    fn with(base: String, shown: String, key: Option<Secret>) -> Result<Self> {
        // Two calls race at most to install the same provider; the loser is content.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(limits::CONNECT)
            // A key is meant for the hub it was given for, not for wherever that one points.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| Error::Transport(plain(&e)))?;
        Ok(Self {
            http,
            base,
            shown,
            key,
            paths: Arc::default(),
            backoff: Backoff::default(),
        })
    }

    /// The hub's URL without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The hub's paths: asked for once, when first needed.
    pub async fn paths(&self) -> Result<&Paths> {
        let found = self.paths.get_or_try_init(|| async {
            match self.ask(Call::get("/.well-known/chorus.json")).await {
                Ok(answer) if answer.status == 200 => Ok(Paths::read(&answer.body)),
                Ok(_) => Ok(Paths::default()),
                Err(error) => Err(error),
            }
        });
        found.await
    }

    /// The same for streams, which outlast a hub that is away: without an answer, the documents' own paths.
    pub(crate) async fn paths_or_default(&self) -> Paths {
        self.paths().await.cloned().unwrap_or_default()
    }

    /// The request for a call, with the key, without a deadline on its body.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }

    /// One exchange, whatever its status; only a broken connection or an answer past the bound is an error here.
    pub async fn ask(&self, call: Call) -> Result<Answer> {
        let mut request = self.request(call.method, &call.path);
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
            let response = request.send().await.map_err(|e| self.broken(&e))?;
            self.read(response).await
        };
        let late = || {
            Error::Transport(format!(
                "{} did not answer within {} s",
                self.shown,
                limits::CALL.as_secs()
            ))
        };
        tokio::time::timeout(limits::CALL, exchange)
            .await
            .map_err(|_| late())?
    }

    /// The `data` of a call that succeeded.
    pub async fn data<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        Ok(self.ask(call).await?.data::<T>()?.0)
    }

    /// A call that may be made again: connection errors and passing refusals are waited out, a few times.
    pub async fn ask_patiently(&self, call: Call) -> Result<Answer> {
        let mut failures = 0;
        loop {
            let error = match self.ask(call.clone()).await.and_then(Answer::accepted) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            let asked = error
                .refusal()
                .and_then(|refusal| refusal.retry_after)
                .unwrap_or_default();
            if !error.passes() || failures >= limits::ATTEMPTS || asked > limits::PATIENCE {
                return Err(error);
            }
            let wait = self.backoff.wait(failures).max(asked);
            tracing::debug!(%error, ?wait, "trying again");
            tokio::time::sleep(wait).await;
        }
    }

    pub(crate) async fn read(&self, mut response: reqwest::Response) -> Result<Answer> {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.broken(&e))? {
            if body.len() + chunk.len() > limits::ANSWER_BYTES {
                return Err(Error::Answer(format!(
                    "it is longer than {} bytes",
                    limits::ANSWER_BYTES
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status,
            body,
            retry_after,
        })
    }

    pub(crate) fn broken(&self, error: &reqwest::Error) -> Error {
        Error::Transport(format!("cannot reach {}: {}", self.shown, plain(error)))
    }
}

#[derive(Deserialize)]
struct Wrapped<T> {
    data: T,
    metadata: Option<Metadata>,
}

/// Wrapped as 001 and 002 print it, bare as frames have it, or the market's (R-13, FRM-83, R-65).
#[derive(Deserialize)]
#[serde(untagged)]
enum Failed {
    Wrapped {
        error: FailedBody,
    },
    Bare(FailedBody),
    Market {
        error_code: String,
        error_message: String,
    },
}

#[derive(Deserialize)]
struct FailedBody {
    code: String,
    message: String,
}

impl Answer {
    /// The answer itself if it is a 2xx, its error otherwise.
    pub fn accepted(self) -> Result<Self> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(Error::Refused(self.refusal()))
        }
    }

    /// `data`, and the instant the hub put beside it.
    pub fn data<T: DeserializeOwned>(self) -> Result<(T, Option<String>)> {
        let accepted = self.accepted()?;
        let wrapped: Wrapped<T> =
            serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))?;
        Ok((wrapped.data, wrapped.metadata.map(|m| m.timestamp)))
    }

    /// A body that is not wrapped.
    pub fn bare<T: DeserializeOwned>(self) -> Result<T> {
        let accepted = self.accepted()?;
        serde_json::from_slice(&accepted.body).map_err(|e| Error::Answer(e.to_string()))
    }

    fn refusal(&self) -> Refusal {
        let (code, message) = match serde_json::from_slice::<Failed>(&self.body) {
            Ok(Failed::Wrapped { error } | Failed::Bare(error)) => (error.code, error.message),
            Ok(Failed::Market {
                error_code,
                error_message,
            }) => (error_code, error_message),
            Err(_) => (
                format!("HTTP_{}", self.status),
                format!("the hub answered with status {}", self.status),
            ),
        };
        Refusal {
            status: self.status,
            code,
            message,
            retry_after: self.retry_after,
        }
    }
}

fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// An absolute http or https URL without user information.
fn plain_url(text: &str) -> Result<url::Url> {
    let wrong = || {
        Error::Input(
            "a URL here is http:// or https:// with a host and without a user or fragment".into(),
        )
    };
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    let plain =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty();
    if plain && url.password().is_none() && url.fragment().is_none() {
        Ok(url)
    } else {
        Err(wrong())
    }
}

/// `hub` as the front part of every URL.
fn base(hub: &str) -> Result<String> {
    let url = plain_url(hub)?;
    if url.query().is_some() {
        return Err(Error::Input("the hub's URL has no query".into()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// One segment of a path, safe to append.
pub(crate) fn segment(text: &str) -> String {
    let plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~' | b'@' | b':');
    let dots = text.bytes().all(|b| b == b'.');
    let byte = |b: u8| {
        if plain(b) && !dots {
            char::from(b).to_string()
        } else {
            format!("%{b:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

/// The innermost reason, without the URL: whoever reads it knows the hub, and a query may hold a token.
pub(crate) fn plain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_url_is_plain_http_or_https() {
        assert_eq!(
            base("http://127.0.0.1:3000/").unwrap(),
            "http://127.0.0.1:3000"
        );
        assert_eq!(
            base("https://hub.example/chorus/").unwrap(),
            "https://hub.example/chorus"
        );
        for bad in [
            "",
            "hub.example",
            "ftp://hub.example",
            "http://a:b@hub.example",
            "http://hub.example/?x=1",
        ] {
            assert!(matches!(base(bad), Err(Error::Input(_))), "{bad}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("alice@chorus"), "alice@chorus");
        assert_eq!(segment("a/../b?c#d"), "a%2F..%2Fb%3Fc%23d");
        assert_eq!(segment(".."), "%2E%2E");
        assert_eq!(segment("é"), "%C3%A9");
    }
}
