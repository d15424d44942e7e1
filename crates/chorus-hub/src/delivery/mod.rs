//! Delivery: live streams, stream feeds, the outbox with its retries, and outgoing HTTP.

mod inbox_peek;
mod live_streams;
pub(crate) mod outbox;
pub(crate) mod outbox_worker;
pub mod outgoing;
mod pending_webhooks;
pub(crate) mod render;
pub(crate) mod sealed_delivery;
mod stream_feed;
mod stream_queue;

pub use inbox_peek::{InboxEvent, InboxPage, peek_inbox};
pub(crate) use live_streams::{LiveStreams, LocalStreams, StreamTopic, end_streams_of_key};
pub(crate) use pending_webhooks::PendingWebhook;
pub use stream_feed::{FeedItem, StreamFeed};
pub(crate) use stream_feed::{FeedReader, FeedSource};
pub(crate) use stream_feed::{find_start, open_activity_feed, open_channel_feed, open_log_feed};
pub(crate) use stream_queue::StreamQueue;

pub use crate::stream_end::StreamEnd;

use crate::clock::Clock;
use crate::identity::Identity;
use crate::seal::SealKey;
use crate::settings::HubOptions;
use crate::store::Store;
use crate::telemetry::SpanRecorder;
use crate::{Principal, Result};
use chorus_wire::{ErrorCode, cursor::HistoryStart, reach::StreamReach, secret::Secret};
use outbox_worker::OutboxWorker;
use outgoing::address_guard::OwnHost;
use outgoing::{DnsResolver, OutgoingClient, OutgoingPolicy};
use pending_webhooks::PendingWebhooks;
use std::sync::Arc;
use tokio::sync::Notify;

/// What streams and outgoing posts need. Cheap to clone: every open stream holds one.
#[derive(Clone)]
pub struct Delivery(Arc<DeliveryInner>);

struct DeliveryInner {
    store: Arc<Store>,
    clock: Clock,
    identity: Arc<Identity>,
    live_streams: Arc<dyn LiveStreams>,
    seal_key: Arc<SealKey>,
    outgoing_client: OutgoingClient,
    outbox_worker: OutboxWorker,
    pending_webhooks: PendingWebhooks,
    /// `None` for a hub that exports no traces.
    span_recorder: Option<SpanRecorder>,
}

impl Delivery {
    pub(crate) fn new(
        options: &HubOptions,
        store: Arc<Store>,
        identity: Arc<Identity>,
        live_streams: Arc<dyn LiveStreams>,
        seal_key: Arc<SealKey>,
        span_recorder: Option<SpanRecorder>,
    ) -> Self {
        let outgoing_client = OutgoingClient::new(OutgoingPolicy {
            allow_private: options.allow_private_endpoints,
            deadline: options.webhook_timeout,
            resolver: Arc::new(DnsResolver::new(options.name_servers.clone())),
            own_host: OwnHost {
                public_url: options.public_url.parse().ok(),
                ..OwnHost::default()
            },
            simulated: options
                .simulated
                .as_ref()
                .map(|machine| machine.network.clone()),
            ..OutgoingPolicy::default()
        });
        Self(Arc::new(DeliveryInner {
            store,
            clock: options.clock.clone(),
            identity,
            live_streams,
            seal_key,
            outgoing_client,
            outbox_worker: OutboxWorker::new(options.webhook_timeout),
            pending_webhooks: PendingWebhooks::default(),
            span_recorder,
        }))
    }

    fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    fn seal_key(&self) -> &SealKey {
        &self.0.seal_key
    }

    pub(crate) fn live_streams(&self) -> &dyn LiveStreams {
        &*self.0.live_streams
    }

    pub(crate) fn outgoing_client(&self) -> &OutgoingClient {
        &self.0.outgoing_client
    }

    /// Notified when a post may be due; a background task waits for it without keeping the hub open.
    pub(crate) fn outbox_wakeup(&self) -> Arc<Notify> {
        self.outbox_worker().wakeup.clone()
    }

    pub(crate) fn outbox_worker(&self) -> &OutboxWorker {
        &self.0.outbox_worker
    }

    fn span_recorder(&self) -> Option<&SpanRecorder> {
        self.0.span_recorder.as_ref()
    }

    pub(crate) fn pending_webhooks(&self) -> &PendingWebhooks {
        &self.0.pending_webhooks
    }
}

/// `GET /agent/inbox`: the entries of this agent from now on, or since a point of the log. The first event shows
/// `resume_token` to a client that opened the stream with a session token. `reach` is what its reader does with a
/// message.
pub async fn open_inbox(
    principal: &Principal,
    delivery: &Delivery,
    since: Option<HistoryStart>,
    resume_token: Option<Secret>,
    reach: StreamReach,
) -> Result<StreamFeed> {
    let agent = principal.require_caller()?;
    let mut connected = serde_json::json!({
        "agent_id": &*agent.agent_id,
        "timestamp": delivery.0.clock.now(),
    });
    if let Some(token) = resume_token {
        connected["resume_token"] = token.expose().into();
    }
    let feed = open_log_feed(
        delivery,
        StreamTopic::Subject(agent.id.into()),
        FeedReader {
            credentials: principal.credential_hashes(),
            reach,
        },
        find_start(delivery, since).await?,
        &connected.to_string(),
    )
    .await?;
    // A rotation between authentication and subscription ended the streams that were open then, but not this one.
    if delivery.0.identity.is_current_key(agent).await? {
        Ok(feed)
    } else {
        Err(ErrorCode::Unauthorized.into())
    }
}
