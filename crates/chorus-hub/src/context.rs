//! The context that the rules of every protocol are given: the layers below them, already built.

use crate::clock::Clock;
use crate::clock_watch::{ClockWatch, ExpiryClock};
use crate::cluster::Cluster;
use crate::delivery::outgoing::webhook_signature::{SignatureHeaders, sign_body};
use crate::delivery::outgoing::{OutgoingClient, PostError};
use crate::delivery::{Delivery, LiveStreams};
use crate::identity::Identity;
use crate::seal::SealKey;
use crate::settings::HubOptions;
use crate::store::{Agent, LogEntry, Store, log};
use crate::telemetry::{self, Span, SpanKind, SpanRecorder};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The layers below the protocols. Cheap to clone; every clone is the same context.
#[derive(Clone)]
pub struct HubContext(Arc<ContextInner>);

struct ContextInner {
    parts: ContextParts,
    opened_at: Duration,
    ready_at: Mutex<Option<Duration>>,
    /// Why the hub must stop, once there is a reason.
    fatal_fault: tokio::sync::watch::Sender<Option<String>>,
}

/// What the composition root puts together.
pub(crate) struct ContextParts {
    pub options: HubOptions,
    pub store: Arc<Store>,
    pub identity: Arc<Identity>,
    pub delivery: Delivery,
    /// `None` for a hub without peers.
    pub cluster: Option<Arc<Cluster>>,
    pub seal_key: Arc<SealKey>,
    pub clock_watch: Arc<ClockWatch>,
    /// `None` for a hub that exports no traces.
    pub span_recorder: Option<SpanRecorder>,
}

/// A reference that does not keep the hub open, for handlers that the layers below hold.
#[derive(Clone)]
pub(crate) struct WeakContext(Weak<ContextInner>);

impl WeakContext {
    /// `None` when the hub is gone.
    pub fn upgrade(&self) -> Option<HubContext> {
        self.0.upgrade().map(HubContext)
    }
}

impl HubContext {
    pub(crate) fn new(parts: ContextParts) -> Self {
        let opened_at = parts.options.clock.monotonic_now();
        Self(Arc::new(ContextInner {
            parts,
            opened_at,
            ready_at: Mutex::default(),
            fatal_fault: tokio::sync::watch::Sender::default(),
        }))
    }

    pub(crate) fn downgrade(&self) -> WeakContext {
        WeakContext(Arc::downgrade(&self.0))
    }

    pub fn options(&self) -> &HubOptions {
        &self.0.parts.options
    }

    pub fn clock(&self) -> &Clock {
        &self.options().clock
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.parts.store
    }

    pub fn identity(&self) -> &Identity {
        &self.0.parts.identity
    }

    pub fn delivery(&self) -> &Delivery {
        &self.0.parts.delivery
    }

    pub(crate) fn live_streams(&self) -> &dyn LiveStreams {
        self.delivery().live_streams()
    }

    pub(crate) fn outgoing_client(&self) -> &OutgoingClient {
        self.delivery().outgoing_client()
    }

    /// A post was enqueued and committed: it goes out now, not at the next poll.
    pub(crate) fn wake_outbox(&self) {
        self.delivery().outbox_worker().wake();
    }

    /// The other hubs that share the database; `None` for a hub without peers.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.0.parts.cluster.as_ref()
    }

    /// How many other hubs are known.
    pub fn peer_count(&self) -> usize {
        self.cluster().map_or(0, |cluster| cluster.peer_count())
    }

    /// Records the spans of requests; `None` for a hub that exports no traces.
    pub fn span_recorder(&self) -> Option<&SpanRecorder> {
        self.0.parts.span_recorder.as_ref()
    }

    /// A span for work that a request caused, or that the hub began by itself; `None` when its trace is not recorded.
    pub(crate) fn start_span_or_trace(&self, name: &'static str) -> Option<Span> {
        match telemetry::current_context() {
            Some(_) => telemetry::start_span(name, SpanKind::Internal),
            None => self
                .span_recorder()
                .and_then(|recorder| recorder.begin_trace(None, name, SpanKind::Internal).span),
        }
    }

    pub(crate) fn seal_key(&self) -> &SealKey {
        &self.0.parts.seal_key
    }

    /// The signature headers of a post to an endpoint of `agent`; none when it has no endpoint secret. A secret that
    /// cannot be read fails the post: without its signature the receiver could not tell it from a forged one.
    pub(crate) fn sign_for_agent(
        &self,
        agent: &Agent,
        message_id: &str,
        body: &[u8],
    ) -> std::result::Result<SignatureHeaders, PostError> {
        let Some(sealed) = agent.sealed_endpoint_secret.as_deref() else {
            return Ok(SignatureHeaders::default());
        };
        let now = self.clock().now();
        let signed = self
            .seal_key()
            .unseal(sealed)
            .and_then(|secret| sign_body(&secret, message_id, body, now));
        signed.ok_or_else(|| {
            tracing::error!(agent = %agent.id, "cannot unseal an endpoint secret: it was sealed with another key");
            PostError::Unreachable("its endpoint secret cannot be used")
        })
    }

    /// The trace id of an entry of this hub's log.
    pub(crate) fn entry_trace_id(&self, entry: &LogEntry) -> uuid::Uuid {
        log::compute_trace_id(entry.seq, entry.at, self.store().trace_salt)
    }

    /// How long this hub has been open.
    pub fn uptime(&self) -> Duration {
        self.clock()
            .monotonic_now()
            .saturating_sub(self.0.opened_at)
    }

    /// Reports a fault after which the hub must not go on; the first one counts.
    pub(crate) fn report_fatal_fault(&self, fault: String) {
        self.0.fatal_fault.send_if_modified(|first_fault| {
            let is_first = first_fault.is_none();
            first_fault.get_or_insert(fault);
            is_first
        });
    }

    /// Completes with the reason when the hub must stop.
    pub async fn wait_fatal_fault(&self) -> String {
        let mut faults = self.0.fatal_fault.subscribe();
        match faults.wait_for(Option::is_some).await {
            Ok(fault) => fault.clone().unwrap_or_default(),
            // The sender lives as long as this context.
            Err(_) => std::future::pending().await,
        }
    }

    pub(crate) fn clock_watch(&self) -> &ClockWatch {
        &self.0.parts.clock_watch
    }

    /// Tells whether stored periods are over (D-123).
    pub(crate) fn expiry_clock(&self) -> ExpiryClock {
        self.clock_watch().expiry_clock()
    }

    /// When `/ready` last made a successful write, on the monotonic clock.
    pub(crate) fn last_ready_at(&self) -> Option<Duration> {
        *self
            .0
            .ready_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_ready_at(&self, at: Duration) {
        *self
            .0
            .ready_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(at);
    }
}
