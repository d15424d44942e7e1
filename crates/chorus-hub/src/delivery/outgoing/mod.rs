//! Outgoing HTTP: the one client for every webhook of the hub, which reaches public addresses only and waits for nobody for long.

mod answer;
mod client;
pub mod guard;
pub mod names;
mod slots;
mod stream;

pub use answer::{Answer, PostError};
pub use stream::{Events, StreamedAnswer};

use bytes::Bytes;
use chorus_wire::{Code, Error, Result, limits};
use guard::{Guard, Verdict};
use names::{Judged, LookUpError, MachineNames, Names};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use slots::{Slot, Slots};
use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// What a body that nobody reads may take.
const AFTERWORDS: Duration = Duration::from_millis(250);

/// What the client may do, how much and how long.
#[derive(Clone)]
pub struct Policy {
    /// Webhooks may reach loopback and private addresses.
    pub allow_private: bool,
    /// Single addresses that may be reached all the same.
    pub except: Vec<IpAddr>,
    /// From the call to the last byte of the answer, waiting, name and connection included.
    pub deadline: Duration,
    pub answer_bytes: usize,
    /// Requests under way; streams are counted apart, because they last.
    pub in_flight: usize,
    /// The same towards one host: seven slow ones leave room for the rest.
    pub per_host: usize,
    /// Requests that wait for their turn; the next one fails at once.
    pub waiting: usize,
    pub stream_deadline: Duration,
    pub stream_bytes: usize,
    pub names: Arc<dyn Names>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_private: false,
            except: Vec::new(),
            deadline: limits::WEBHOOK_DEADLINE,
            answer_bytes: limits::WEBHOOK_ANSWER_BYTES,
            in_flight: limits::WEBHOOKS_IN_FLIGHT,
            per_host: limits::WEBHOOKS_PER_HOST,
            waiting: limits::WEBHOOKS_WAITING,
            stream_deadline: limits::WEBHOOK_STREAM_DEADLINE,
            stream_bytes: limits::WEBHOOK_STREAM_BYTES,
            names: Arc::new(MachineNames::default()),
        }
    }
}

/// Cheap to clone; every clone shares connections and bounds.
#[derive(Clone)]
pub struct Outgoing(Arc<Parts>);

struct Parts {
    client: Client,
    judged: Judged,
    posts: Slots,
    streams: Slots,
    policy: Policy,
}

impl Outgoing {
    pub fn new(policy: Policy) -> Self {
        let guard = Guard {
            allow_private: policy.allow_private,
            except: policy.except.clone(),
        };
        let judged = Judged {
            names: policy.names.clone(),
            guard: Arc::new(guard),
        };
        let slots = || Slots::new(policy.in_flight, policy.per_host, policy.waiting);
        Self(Arc::new(Parts {
            client: client::build(judged.clone()),
            judged,
            posts: slots(),
            streams: slots(),
            policy,
        }))
    }

    /// Whether a webhook may be registered at `url`. A name that does not resolve today is accepted, and judged at each connection.
    pub async fn admit(&self, url: &str) -> Result<()> {
        let url = match Url::parse(url) {
            // Nothing can be connected to there, so nothing has to be kept out; where such a port may stand is the wire's to say.
            Err(url::ParseError::InvalidPort) => return Ok(()),
            read => read
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https")),
        };
        let url = url.ok_or_else(|| {
            Error::validation("the endpoint must be an absolute http or https URL")
        })?;
        let judged = match self.0.judged.guard.judge(&url) {
            Ok(Verdict::Fine) => return Ok(()),
            Ok(Verdict::Ask(name)) => {
                timeout(self.0.policy.deadline, self.0.judged.addresses(&name)).await
            }
            Err(guard::Blocked) => return Err(Code::EndpointBlocked.into()),
        };
        match judged {
            Ok(Err(LookUpError::Blocked(_))) => Err(Code::EndpointBlocked.into()),
            Ok(Ok(_) | Err(LookUpError::Unresolved(_))) | Err(_) => Ok(()),
        }
    }

    /// POSTs `body` (JSON unless `headers` say otherwise) and reads the whole bounded answer.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<Answer, PostError> {
        self.in_time(async {
            let (_slot, response) = self
                .send(&self.0.posts, "application/json", url, headers, body)
                .await?;
            answer::whole(response, self.0.policy.answer_bytes).await
        })
        .await
    }

    /// POSTs `body`; only the status of the answer counts. What comes after it is read for a moment, so that the connection can
    /// be used again, and then left alone.
    pub async fn knock(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<u16, PostError> {
        let sent = self.send(&self.0.posts, "application/json", url, headers, body);
        let (_slot, response) = self.in_time(sent).await?;
        let status = response.status().as_u16();
        let _ = timeout(
            AFTERWORDS,
            answer::whole(response, self.0.policy.answer_bytes),
        )
        .await;
        Ok(status)
    }

    /// POSTs `body` and asks for events. They are handed out as they come; an answer that is no stream comes whole. The deadline holds for the
    /// first byte and for each pause.
    pub async fn post_streaming(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<StreamedAnswer, PostError> {
        let policy = &self.0.policy;
        let end = Instant::now() + policy.stream_deadline;
        self.in_time(async {
            let (slot, response) = self
                .send(&self.0.streams, "text/event-stream", url, headers, body)
                .await?;
            if response.status().is_success() && answer::is_event_stream(&response) {
                let bounds = stream::Bounds {
                    bytes: policy.stream_bytes,
                    pause: policy.deadline,
                    end,
                };
                return Ok(StreamedAnswer::Events(Box::new(Events::new(
                    response, slot, bounds,
                ))));
            }
            answer::whole(response, policy.answer_bytes)
                .await
                .map(StreamedAnswer::Whole)
        })
        .await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = std::result::Result<T, PostError>>,
    ) -> std::result::Result<T, PostError> {
        timeout(self.0.policy.deadline, work)
            .await
            .unwrap_or(Err(PostError::TimedOut))
    }

    async fn send(
        &self,
        slots: &Slots,
        accept: &'static str,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<(Slot, Response), PostError> {
        let url = Url::parse(url).map_err(|_| PostError::Unreachable("its URL cannot be read"))?;
        // An address written in the URL never comes to the resolver, so it is judged here.
        self.0
            .judged
            .guard
            .judge(&url)
            .map_err(|guard::Blocked| PostError::Blocked)?;
        let headers = header_map(accept, headers)?;
        let slot = slots.take(url.host_str().unwrap_or_default()).await?;
        let response = self
            .0
            .client
            .post(url)
            .headers(headers)
            .body(body)
            .send()
            .await
            .map_err(|e| PostError::of(&e))?;
        answer::check_headers(&response)?;
        Ok((slot, response))
    }
}

fn header_map(
    accept: &'static str,
    headers: &[(&str, &str)],
) -> std::result::Result<HeaderMap, PostError> {
    let wrong = PostError::Unreachable("a header of the request cannot be sent");
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).map_err(|_| wrong)?;
        map.insert(name, HeaderValue::try_from(*value).map_err(|_| wrong)?);
    }
    Ok(map)
}
