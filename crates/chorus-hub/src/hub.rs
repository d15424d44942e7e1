//! The hub: its settings and the rooms behind it.

use crate::cluster::ClusterNode;
use crate::delivery::outbox_pool::{self, OutboxPool};
use crate::delivery::outgoing::{OutgoingClient, OutgoingPolicy};
use crate::delivery::{LiveStreams, LocalStreams};
use crate::frame::FrameService;
use crate::hub_callbacks::WeakHub;
use crate::identity::{Identity, IdentityPeers, IdentityState};
use crate::seal::SealKey;
use crate::settings::HubOptions;
use crate::store::{EntryPublisher, HubSettings, LogEntry, Store, log};
use crate::stream_end::StreamEnd;
use crate::{Clock, Result, ops};

pub use crate::start_error::StartError;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Cheap to clone; every clone is the same hub.
#[derive(Clone)]
pub struct Hub(Arc<HubInner>);

struct HubInner {
    options: HubOptions,
    store: Arc<Store>,
    live_streams: Arc<dyn LiveStreams>,
    cluster: Option<Arc<ClusterNode>>,
    identity: Identity,
    outgoing_client: OutgoingClient,
    outbox_pool: OutboxPool,
    seal_key: SealKey,
    frames: FrameService,
    /// Rung when something is owed to others.
    outbox_wakeup: Arc<tokio::sync::Notify>,
    opened_at: Duration,
    ready_at: Mutex<Option<Duration>>,
}

impl Hub {
    /// Opens the store (creating or migrating it), takes the lock on the data directory, starts the background work.
    pub async fn open(mut options: HubOptions) -> std::result::Result<Self, StartError> {
        check_cluster_options(&options)?;
        if options.bus_url.is_some() {
            options.clock = options.clock.into_synced();
        }
        let local_streams = Arc::new(LocalStreams::new());
        let cluster = options.bus_url.as_ref().map(|_| ClusterNode::new());
        let live_streams: Arc<dyn LiveStreams> = cluster.as_ref().map_or_else(
            || local_streams.clone() as Arc<dyn LiveStreams>,
            |cluster| cluster.clone(),
        );
        let publisher: Arc<dyn EntryPublisher> = cluster.as_ref().map_or_else(
            || local_streams.clone() as _,
            |cluster| cluster.clone() as _,
        );
        let store = Arc::new(
            Store::open(
                &options.data_dir,
                options.database_url.as_ref(),
                options.clock.clone(),
                publisher,
            )
            .await?,
        );
        let newest_seq = store.newest_seq().await.map_err(unreadable_store)?;
        cluster.as_ref().map_or_else(
            || local_streams.init_from_store(store.trace_salt, newest_seq),
            |cluster| cluster.init_from_store(store.trace_salt, newest_seq),
        );
        let seal_key =
            SealKey::load_or_create(&options.data_dir, options.seal_key_file.as_deref())?;
        let public_url = options.public_url.trim_end_matches('/').to_owned();
        store.set_hub_settings(HubSettings {
            public_url,
            agent_turns: options.agent_turns,
        });
        let outgoing_client = OutgoingClient::new(OutgoingPolicy {
            allow_private: options.allow_private_endpoints,
            deadline: options.webhook_timeout,
            ..OutgoingPolicy::default()
        });
        let identity = Identity::new(
            &options,
            store.clone(),
            IdentityState::new(&options),
            cluster.as_ref().map(|cluster| IdentityPeers {
                presence: cluster.clone(),
                budgets: cluster.clone(),
            }),
        );
        let opened_at = options.clock.monotonic_now();
        let hub = Self(Arc::new(HubInner {
            options,
            store,
            live_streams,
            cluster,
            identity,
            outgoing_client,
            outbox_pool: OutboxPool::default(),
            seal_key,
            frames: FrameService::default(),
            outbox_wakeup: Arc::default(),
            opened_at,
            ready_at: Mutex::default(),
        }));
        if let Err(start_error) = hub.join_cluster().await {
            hub.close().await;
            return Err(start_error);
        }
        ops::maintenance::fail_interrupted_webhooks(&hub)
            .await
            .map_err(unreadable_store)?;
        ops::maintenance::start_maintenance(&hub);
        Ok(hub)
    }

    async fn join_cluster(&self) -> std::result::Result<(), StartError> {
        let (Some(cluster), Some(url)) = (self.cluster(), &self.options().bus_url) else {
            return Ok(());
        };
        let callbacks = Box::new(WeakHub(self.downgrade()));
        cluster
            .join_cluster(
                (url, &self.options().bus_files),
                self.store().trace_salt,
                callbacks,
            )
            .await
            .map_err(StartError::Bus)
    }

    pub fn options(&self) -> &HubOptions {
        &self.0.options
    }

    pub fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn live_streams(&self) -> &dyn LiveStreams {
        &*self.0.live_streams
    }

    /// The other hubs of this database; nothing when it has none.
    pub(crate) fn cluster(&self) -> Option<&Arc<ClusterNode>> {
        self.0.cluster.as_ref()
    }

    /// How many other hubs this one knows.
    pub fn peer_count(&self) -> usize {
        self.cluster().map_or(0, |cluster| cluster.peer_count())
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    pub(crate) fn outgoing_client(&self) -> &OutgoingClient {
        &self.0.outgoing_client
    }

    pub(crate) fn outbox_pool(&self) -> &OutboxPool {
        &self.0.outbox_pool
    }

    pub(crate) fn seal_key(&self) -> &SealKey {
        &self.0.seal_key
    }

    pub(crate) fn frames(&self) -> &FrameService {
        &self.0.frames
    }

    /// Ends every stream of a principal: its key was rotated, or it is gone.
    pub(crate) fn end_streams(&self, principal: i64, reason: StreamEnd) {
        self.live_streams().end_streams(principal, reason);
        self.frames()
            .end_streams(principal, reason, self.clock().monotonic_now());
    }

    /// Something was put into the outbox: it goes out now, not at the next look.
    pub(crate) fn wake_outbox(&self) {
        self.0.outbox_wakeup.notify_one();
    }

    pub(crate) fn outbox_wakeup(&self) -> &Arc<tokio::sync::Notify> {
        &self.0.outbox_wakeup
    }

    /// The trace id of an entry of this hub's log.
    pub(crate) fn entry_trace_id(&self, entry: &LogEntry) -> uuid::Uuid {
        log::compute_trace_id(entry.seq, entry.at, self.store().trace_salt)
    }

    /// When the store was last seen to take a write for `/ready`, on the steady clock.
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

    /// How long this hub has been open.
    pub fn uptime(&self) -> Duration {
        self.clock()
            .monotonic_now()
            .saturating_sub(self.0.opened_at)
    }

    /// A hold on the hub that does not keep it open: for background work.
    pub(crate) fn downgrade(&self) -> impl Fn() -> Option<Hub> + Send + Sync + 'static {
        let weak = Arc::downgrade(&self.0);
        move || weak.upgrade().map(Hub)
    }

    /// Ends every open feed with a word to its reader. New ones are refused from here on.
    pub fn drain_streams(&self) {
        self.live_streams().drain_streams();
        self.frames().drain_streams(self.clock().monotonic_now());
    }

    /// Commits what is queued and closes the store. After it every write answers `ERR_UNAVAILABLE`.
    pub async fn close(&self) {
        self.drain_streams();
        self.store().close().await;
        if let Some(cluster) = self.cluster() {
            cluster.leave_cluster().await;
        }
    }

    /// Trims what is past its time and posts what is due, now and completely; the hub does both by itself all the time.
    pub async fn run_maintenance(&self) -> Result<()> {
        ops::maintenance::run_maintenance_pass(self).await?;
        outbox_pool::run_due_posts(self).await
    }
}

/// What hubs of one cluster must share is set for all of them.
fn check_cluster_options(options: &HubOptions) -> std::result::Result<(), StartError> {
    if options.bus_url.is_some() && options.database_url.is_none() {
        return Err(StartError::Bus(
            "hubs that share a bus share a database: it needs --database postgres://…".into(),
        ));
    }
    if options.bus_url.is_some() && options.seal_key_file.is_none() {
        let message = "hubs that share a bus share what they have sealed: it needs --seal-key-file, the same for all";
        return Err(StartError::Bus(message.into()));
    }
    Ok(())
}

fn unreadable_store(error: chorus_wire::Error) -> StartError {
    StartError::Store {
        what: "the database could not be read".into(),
        cause: error.cause.unwrap_or(error.message),
    }
}
