//! Outgoing HTTP: the one client for all webhooks of the hub, with an SSRF guard and limits on
//! time, size and concurrency.

pub mod address_guard;
mod answer;
mod answer_events;
pub mod capacity_shares;
mod dns_resolver;
mod http_client;
pub mod name_resolver;
mod request_slots;
mod transport;
pub mod webhook_signature;

pub use answer::{PostError, WebhookAnswer};
pub use answer_events::{AnswerEvents, StreamedAnswer};
pub use dns_resolver::DnsResolver;
pub(crate) use http_client::build_tls_config;

use crate::simulation::SimulatedNetwork;
use crate::telemetry::{self, SpanKind};
use address_guard::{AddressGuard, CheckedHost, OwnHost};
use bytes::Bytes;
use capacity_shares::DeliveryOwner;
use chorus_wire::{Error, ErrorCode, Result, limits};
use name_resolver::{GuardedResolver, NameResolver};
use request_slots::{RequestSlot, RequestSlots, SlotLimits, SlotRequest};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use std::{future::Future, net::IpAddr, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use transport::OutgoingTransport;

/// Max time for reading a body that is not used, so that the connection can be reused.
const UNREAD_BODY_WAIT: Duration = Duration::from_millis(250);

/// The header by which a receiver continues the trace of the request.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What the client may reach, and its limits.
#[derive(Clone)]
pub struct OutgoingPolicy {
    /// Webhooks may reach loopback and private addresses.
    pub allow_private: bool,
    /// Single addresses that may be reached although they are private.
    pub allowed_addresses: Vec<IpAddr>,
    /// What may be reached of this machine itself.
    pub own_host: OwnHost,
    /// From the call to the last byte of the answer, including the wait for a slot, name resolution
    /// and connecting.
    pub deadline: Duration,
    pub max_answer_bytes: usize,
    /// Max requests in flight. Streams are counted separately, because they last longer.
    pub max_in_flight: usize,
    /// Max requests in flight to the receivers of one owner (D-103).
    pub max_per_owner: usize,
    /// Max requests in flight to one address, whatever names lead to it (D-103).
    pub max_per_address: usize,
    /// Max requests that wait for a slot; the next one fails at once.
    pub max_waiting: usize,
    pub stream_deadline: Duration,
    pub max_stream_bytes: usize,
    pub resolver: Arc<dyn NameResolver>,
    /// The network of a simulation (D-110).
    pub simulated: Option<Arc<dyn SimulatedNetwork>>,
}

impl Default for OutgoingPolicy {
    fn default() -> Self {
        Self {
            allow_private: false,
            allowed_addresses: Vec::new(),
            own_host: OwnHost::default(),
            deadline: limits::WEBHOOK_DEADLINE,
            max_answer_bytes: limits::WEBHOOK_ANSWER_BYTES,
            max_in_flight: crate::limits::WEBHOOKS_IN_FLIGHT,
            max_per_owner: crate::limits::WEBHOOKS_PER_OWNER,
            max_per_address: crate::limits::WEBHOOKS_PER_ADDRESS,
            max_waiting: crate::limits::WEBHOOKS_WAITING,
            stream_deadline: limits::WEBHOOK_STREAM_DEADLINE,
            max_stream_bytes: limits::WEBHOOK_STREAM_BYTES,
            resolver: Arc::new(DnsResolver::new(Vec::new())),
            simulated: None,
        }
    }
}

/// The client for webhooks. Cheap to clone; all clones share connections and limits.
#[derive(Clone)]
pub struct OutgoingClient(Arc<OutgoingInner>);

struct OutgoingInner {
    transport: OutgoingTransport,
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
            own_host: policy.own_host.clone(),
        };
        let guarded_resolver = GuardedResolver {
            resolver: policy.resolver.clone(),
            guard: Arc::new(guard),
            pins: Arc::default(),
        };
        let slot_limits = SlotLimits {
            max_in_flight: policy.max_in_flight,
            max_per_owner: policy.max_per_owner,
            max_per_address: policy.max_per_address,
            max_waiting: policy.max_waiting,
        };
        Self(Arc::new(OutgoingInner {
            transport: OutgoingTransport::new(
                policy.simulated.clone(),
                guarded_resolver.clone(),
                policy.deadline,
            ),
            guarded_resolver,
            post_slots: RequestSlots::new(slot_limits),
            stream_slots: RequestSlots::new(slot_limits),
            policy,
        }))
    }

    /// Checks whether a webhook may be registered at `url`. A name is not looked up: the caller may be
    /// a stranger, who would learn what the name means inside the hub's network. Its addresses are
    /// checked at each connection (D-102).
    pub fn check_endpoint(&self, url: &str) -> Result<()> {
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
        match self.0.guarded_resolver.guard.check_url(&url) {
            Ok(CheckedHost::Literal(_) | CheckedHost::Name(_)) => Ok(()),
            Err(address_guard::AddressBlocked) => Err(ErrorCode::EndpointBlocked.into()),
        }
    }

    /// POSTs `body` (JSON unless `headers` say otherwise) and reads the whole answer, up to the
    /// size limit.
    pub async fn post(
        &self,
        owner: DeliveryOwner,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<WebhookAnswer, PostError> {
        self.within_deadline(async {
            let slot = self.0.post_slots.request_slot(owner);
            let (_slot, response) = self
                .send_post(slot, "application/json", url, headers, body)
                .await?;
            answer::read_answer(response, self.0.policy.max_answer_bytes).await
        })
        .await
    }

    /// POSTs `body` and waits up to `max_wait` for the answer, which may be the result of long work. It takes a slot of the
    /// streams, because it may last as long as one.
    pub async fn post_long_work(
        &self,
        owner: DeliveryOwner,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
        max_wait: Duration,
    ) -> std::result::Result<WebhookAnswer, PostError> {
        let slot = SlotRequest {
            max_wait: self.0.policy.deadline,
            ..self.0.stream_slots.request_slot(owner)
        };
        let work = async {
            let (_slot, response) = self
                .send_post(slot, "application/json", url, headers, body)
                .await?;
            answer::read_answer(response, self.0.policy.max_answer_bytes).await
        };
        timeout(max_wait, work)
            .await
            .unwrap_or(Err(PostError::TimedOut))
    }

    /// After this time a post of [`Self::post_long_work`] has its slot and its connection, and the receiver has the request. It is
    /// less than the lease of a dispatch, after which another hub would post the job too.
    pub fn handover_time(&self) -> Duration {
        let longest = self.0.policy.deadline * 2 + UNREAD_BODY_WAIT;
        longest.min(crate::limits::OUTBOX_LEASE / 2)
    }

    /// POSTs `body` and returns only the status of the answer. Its body is read for a moment, so
    /// that the connection can be reused, and then abandoned. It waits only briefly for a slot:
    /// the outbox tries again, and a post that waits takes one of its places.
    pub async fn post_status_only(
        &self,
        owner: DeliveryOwner,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<u16, PostError> {
        let slot = SlotRequest {
            max_wait: crate::limits::OUTBOX_SLOT_WAIT,
            ..self.0.post_slots.request_slot(owner)
        };
        let sending = self.send_post(slot, "application/json", url, headers, body);
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
        owner: DeliveryOwner,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<StreamedAnswer, PostError> {
        let policy = &self.0.policy;
        let stream_deadline = Instant::now() + policy.stream_deadline;
        self.within_deadline(async {
            let slot = self.0.stream_slots.request_slot(owner);
            let (slot, response) = self
                .send_post(slot, "text/event-stream", url, headers, body)
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

    /// Posts in a span of its own, which ends when the answer begins. The span has neither URL nor host: both may be secrets of
    /// the receiver.
    async fn send_post(
        &self,
        slot: SlotRequest<'_>,
        accept: &'static str,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> std::result::Result<(RequestSlot, Response), PostError> {
        let mut headers = header_map(accept, headers)?;
        let span = telemetry::start_span("POST webhook", SpanKind::Client);
        let traceparent = telemetry::outgoing_traceparent(span.as_ref());
        if let Some(value) = traceparent.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(TRACEPARENT, value);
        }
        let posted = self.post_guarded(slot, url, headers, body).await;
        if let Some(mut span) = span {
            span.set_text("http.request.method", "POST");
            match &posted {
                Ok((_, response)) => {
                    let status = response.status();
                    span.set_number("http.response.status_code", status.as_u16().into());
                    if !status.is_success() {
                        span.fail("status");
                    }
                }
                Err(error) => span.fail(error.kind()),
            }
            span.finish();
        }
        posted
    }

    async fn post_guarded(
        &self,
        slot: SlotRequest<'_>,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> std::result::Result<(RequestSlot, Response), PostError> {
        let url = Url::parse(url).map_err(|_| PostError::Unreachable("its URL cannot be read"))?;
        let resolver = &self.0.guarded_resolver;
        let host = resolver
            .guard
            .check_url(&url)
            .map_err(|address_guard::AddressBlocked| PostError::Blocked)?;
        let resolve = async {
            match &host {
                CheckedHost::Literal(address) => Ok(GuardedResolver::pin_literal(*address)),
                CheckedHost::Name(name) => resolver.pin_name(name, slot.owner).await,
            }
        };
        // The pin is held until the answer begins: by then the connection exists.
        let (slot, pin) = slot.acquire(resolve).await?;
        if let CheckedHost::Name(name) = &host {
            resolver.renew_pin(name, &pin);
        }
        let response = self.0.transport.post(url, headers, body).await?;
        answer::check_headers(&response)?;
        Ok((slot, response))
    }
}

fn header_map(
    accept: &'static str,
    headers: &[(&str, &str)],
) -> std::result::Result<HeaderMap, PostError> {
    let bad_header = PostError::Unreachable("a header of the request cannot be sent");
    let mut map = HeaderMap::with_capacity(headers.len() + 3);
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in headers {
        let name = HeaderName::try_from(*name).map_err(|_| bad_header)?;
        map.insert(name, HeaderValue::try_from(*value).map_err(|_| bad_header)?);
    }
    Ok(map)
}
