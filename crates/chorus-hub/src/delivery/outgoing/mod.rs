//! Outgoing HTTP: the one client for all webhooks of the hub, with an SSRF guard and limits on
//! time, size and concurrency.

pub mod address_guard;
mod answer;
mod answer_events;
mod http_client;
pub mod name_resolver;
mod request_slots;

pub use answer::{PostError, WebhookAnswer};
pub use answer_events::{AnswerEvents, StreamedAnswer};

use address_guard::{AddressGuard, HostVerdict};
use bytes::Bytes;
use chorus_wire::{Error, ErrorCode, Result, limits};
use name_resolver::{GuardedResolver, LookupError, NameResolver, SystemResolver};
use request_slots::{RequestSlot, RequestSlots};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// Max time for reading a body that is not used, so that the connection can be reused.
const UNREAD_BODY_WAIT: Duration = Duration::from_millis(250);

/// What the client may reach, and its limits.
#[derive(Clone)]
pub struct OutgoingPolicy {
    /// Webhooks may reach loopback and private addresses.
    pub allow_private: bool,
    /// Single addresses that may be reached although they are private.
    pub allowed_addresses: Vec<IpAddr>,
    /// From the call to the last byte of the answer, including the wait for a slot, name resolution
    /// and connecting.
    pub deadline: Duration,
    pub max_answer_bytes: usize,
    /// Max requests in flight. Streams are counted separately, because they last longer.
    pub max_in_flight: usize,
    /// Max requests in flight to one host, so that a few slow hosts leave slots for the others.
    pub max_per_host: usize,
    /// Max requests that wait for a slot; the next one fails at once.
    pub max_waiting: usize,
    pub stream_deadline: Duration,
    pub max_stream_bytes: usize,
    pub resolver: Arc<dyn NameResolver>,
}

impl Default for OutgoingPolicy {
    fn default() -> Self {
        Self {
            allow_private: false,
            allowed_addresses: Vec::new(),
            deadline: limits::WEBHOOK_DEADLINE,
            max_answer_bytes: limits::WEBHOOK_ANSWER_BYTES,
            max_in_flight: crate::limits::WEBHOOKS_IN_FLIGHT,
            max_per_host: crate::limits::WEBHOOKS_PER_HOST,
            max_waiting: crate::limits::WEBHOOKS_WAITING,
            stream_deadline: limits::WEBHOOK_STREAM_DEADLINE,
            max_stream_bytes: limits::WEBHOOK_STREAM_BYTES,
            resolver: Arc::new(SystemResolver::default()),
        }
    }
}

/// The client for webhooks. Cheap to clone; all clones share connections and limits.
#[derive(Clone)]
pub struct OutgoingClient(Arc<OutgoingInner>);

struct OutgoingInner {
    client: Client,
    guarded_resolver: GuardedResolver,
    post_slots: RequestSlots,
    stream_slots: RequestSlots,
    policy: OutgoingPolicy,
}

impl OutgoingClient {
    pub fn new(policy: OutgoingPolicy) -> Self {
        let guard = AddressGuard {
            allow_private: policy.allow_private,
            allowed_addresses: policy.allowed_addresses.clone(),
        };
        let guarded_resolver = GuardedResolver {
            resolver: policy.resolver.clone(),
            guard: Arc::new(guard),
        };
        let new_slots = || {
            RequestSlots::new(
                policy.max_in_flight,
                policy.max_per_host,
                policy.max_waiting,
            )
        };
        Self(Arc::new(OutgoingInner {
            client: http_client::build_client(guarded_resolver.clone()),
            guarded_resolver,
            post_slots: new_slots(),
            stream_slots: new_slots(),
            policy,
        }))
    }

    /// Checks whether a webhook may be registered at `url`. A name that does not resolve now is
    /// accepted, and checked at each connection.
    pub async fn check_endpoint(&self, url: &str) -> Result<()> {
        let url = match Url::parse(url) {
            // No connection can be made to such a port, so there is nothing to guard against.
            // chorus-wire decides where such a URL is accepted.
            Err(url::ParseError::InvalidPort) => return Ok(()),
            parsed => parsed
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https")),
        };
        let url = url.ok_or_else(|| {
            Error::validation("the endpoint must be an absolute http or https URL")
        })?;
        let lookup = match self.0.guarded_resolver.guard.check_url(&url) {
            Ok(HostVerdict::Allowed) => return Ok(()),
            Ok(HostVerdict::Resolve(name)) => {
                timeout(
                    self.0.policy.deadline,
                    self.0.guarded_resolver.resolve_allowed(&name),
                )
                .await
            }
            Err(address_guard::AddressBlocked) => return Err(ErrorCode::EndpointBlocked.into()),
        };
        match lookup {
            Ok(Err(LookupError::Blocked(_))) => Err(ErrorCode::EndpointBlocked.into()),
            Ok(Ok(_) | Err(LookupError::Unresolved(_))) | Err(_) => Ok(()),
        }
    }

    /// POSTs `body` (JSON unless `headers` say otherwise) and reads the whole answer, up to the
    /// size limit.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<WebhookAnswer, PostError> {
        self.within_deadline(async {
            let (_slot, response) = self
                .send_post(&self.0.post_slots, "application/json", url, headers, body)
                .await?;
            answer::read_answer(response, self.0.policy.max_answer_bytes).await
        })
        .await
    }

    /// POSTs `body` and returns only the status of the answer. Its body is read for a moment, so
    /// that the connection can be reused, and then abandoned.
    pub async fn post_status_only(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<u16, PostError> {
        let sending = self.send_post(&self.0.post_slots, "application/json", url, headers, body);
        let (_slot, response) = self.within_deadline(sending).await?;
        let status = response.status().as_u16();
        let _ = timeout(
            UNREAD_BODY_WAIT,
            answer::read_answer(response, self.0.policy.max_answer_bytes),
        )
        .await;
        Ok(status)
    }

    /// POSTs `body` and asks for events, which are returned as they come. An answer that is no
    /// stream is read whole. The deadline applies to the first byte and to each pause.
    pub async fn post_streaming(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<StreamedAnswer, PostError> {
        let policy = &self.0.policy;
        let stream_deadline = Instant::now() + policy.stream_deadline;
        self.within_deadline(async {
            let (slot, response) = self
                .send_post(
                    &self.0.stream_slots,
                    "text/event-stream",
                    url,
                    headers,
                    body,
                )
                .await?;
            if response.status().is_success() && answer::is_event_stream(&response) {
                let bounds = answer_events::StreamBounds {
                    max_bytes: policy.max_stream_bytes,
                    max_pause: policy.deadline,
                    deadline: stream_deadline,
                };
                return Ok(StreamedAnswer::Events(Box::new(AnswerEvents::new(
                    response, slot, bounds,
                ))));
            }
            answer::read_answer(response, policy.max_answer_bytes)
                .await
                .map(StreamedAnswer::Whole)
        })
        .await
    }

    async fn within_deadline<T>(
        &self,
        work: impl Future<Output = std::result::Result<T, PostError>>,
    ) -> std::result::Result<T, PostError> {
        timeout(self.0.policy.deadline, work)
            .await
            .unwrap_or(Err(PostError::TimedOut))
    }

    async fn send_post(
        &self,
        slots: &RequestSlots,
        accept: &'static str,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<(RequestSlot, Response), PostError> {
        let url = Url::parse(url).map_err(|_| PostError::Unreachable("its URL cannot be read"))?;
        // A literal address in the URL never reaches the resolver, so it is checked here.
        self.0
            .guarded_resolver
            .guard
            .check_url(&url)
            .map_err(|address_guard::AddressBlocked| PostError::Blocked)?;
        let headers = header_map(accept, headers)?;
        let slot = slots
            .acquire_slot(url.host_str().unwrap_or_default())
            .await?;
        let response = self
            .0
            .client
            .post(url)
            .headers(headers)
            .body(body)
            .send()
            .await
            .map_err(|e| PostError::from_client_error(&e))?;
        answer::check_headers(&response)?;
        Ok((slot, response))
    }
}

fn header_map(
    accept: &'static str,
    headers: &[(&str, &str)],
) -> std::result::Result<HeaderMap, PostError> {
    let bad_header = PostError::Unreachable("a header of the request cannot be sent");
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).map_err(|_| bad_header)?;
        map.insert(name, HeaderValue::try_from(*value).map_err(|_| bad_header)?);
    }
    Ok(map)
}
