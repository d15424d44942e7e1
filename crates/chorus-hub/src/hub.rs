//! The composition root: builds the layers of a hub, registers their handlers, and starts the background work.

use crate::channel::delivery_attempt::ChannelDeliveryHandler;
use crate::clock_watch::ClockWatch;
use crate::cluster::{Cluster, HubLink, SharedSettings, connect_nats};
use crate::context::{ContextParts, HubContext};
use crate::delivery::outbox::OutboxHandlers;
use crate::delivery::{Delivery, LiveStreams, LocalStreams, outbox_worker};
use crate::frame::Frames;
use crate::identity::{Identity, IdentityState};
use crate::market::jobs::JobCallbackHandler;
use crate::seal::{SealKey, SealedData};
use crate::settings::HubOptions;
use crate::store::{DatabaseUrl, HubSettings, Store, counters, explain_full_disk, seal_record};
use crate::telemetry::SpanRecorder;
use crate::{Result, lifecycle, market, ops};
use chorus_wire::time::UnixMicros;
use std::ops::Deref;
use std::sync::Arc;

pub use crate::start_error::StartError;

/// A running hub. Cheap to clone; every clone is the same hub.
#[derive(Clone)]
pub struct Hub {
    context: HubContext,
    frames: Frames,
}

/// Rules take the context, so callers pass `&hub`.
impl Deref for Hub {
    type Target = HubContext;

    fn deref(&self) -> &HubContext {
        &self.context
    }
}

impl Hub {
    /// Opens the store (creating or migrating it), takes the lock on the data directory, joins the cluster if there is one, and
    /// starts the background work.
    pub async fn open(options: HubOptions) -> std::result::Result<Self, StartError> {
        let data_dir = options.data_dir.clone();
        let is_on_file = options.database_url.is_none() && options.simulated.is_none();
        // On the heap, because a start is large and happens once.
        Box::pin(Self::open_layers(options))
            .await
            .map_err(|error| match is_on_file {
                true => explain_full_disk(error, &data_dir),
                false => error,
            })
    }

    async fn open_layers(mut options: HubOptions) -> std::result::Result<Self, StartError> {
        check_cluster_options(&options)?;
        market::schema::size_schema_cache(options.memory.compiled_schemas);
        if options.bus_url.is_some() {
            options.clock = options.clock.into_synced();
        }
        let span_recorder = options.trace_export.clone().map(|export| {
            let (recorder, queue) = SpanRecorder::open(options.clock.clone(), export.ratio);
            ops::otlp::start_exporter(queue, export);
            recorder
        });
        let context = open_context(options, span_recorder).await?;
        let outbox_worker = context.delivery().outbox_worker();
        outbox_worker.register_handlers(OutboxHandlers {
            job_callback: Box::new(JobCallbackHandler(context.downgrade())),
            channel_delivery: Box::new(ChannelDeliveryHandler(context.downgrade())),
        });
        let frames = Frames::new(context.clone());
        let hub = Self { context, frames };
        if let Err(start_error) = hub.join_cluster().await {
            hub.close().await;
            return Err(start_error);
        }
        ops::recover_webhooks::fail_interrupted_webhooks(&hub)
            .await
            .map_err(unreadable_store)?;
        lifecycle::fill_name_skeletons(&hub)
            .await
            .map_err(unreadable_store)?;
        ops::maintenance::start_maintenance(&hub.frames);
        Ok(hub)
    }

    async fn join_cluster(&self) -> std::result::Result<(), StartError> {
        let (Some(cluster), Some(url)) = (self.cluster(), &self.options().bus_url) else {
            return Ok(());
        };
        let simulated = self.options().simulated.as_ref();
        let link = match simulated.and_then(|machine| machine.bus.clone()) {
            Some(simulated_bus) => HubLink::Simulated(simulated_bus),
            None => connect_nats(url, &self.options().bus_files)
                .await
                .map_err(StartError::Bus)?,
        };
        let settings = SharedSettings {
            host_name: self.options().host_name.clone(),
            seal: self.seal_key().fingerprint(),
        };
        cluster.register_frames(Box::new(self.frames.downgrade()));
        cluster
            .join(
                link,
                self.store().trace_salt,
                self.seal_key().bus_key(),
                settings,
            )
            .await
            .map_err(StartError::Bus)
    }

    /// The frame protocol of this hub.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Ends every open stream with [`crate::delivery::StreamEnd::Shutdown`] and refuses new ones.
    pub fn drain_streams(&self) {
        self.live_streams().drain_streams();
        self.frames.drain_streams();
    }

    /// Commits queued writes and closes the store. After it every write answers `ERR_UNAVAILABLE`.
    pub async fn close(&self) {
        self.drain_streams();
        if let Err(error) = ops::recover_webhooks::fail_cut_webhooks(self).await {
            tracing::warn!(%error, cause = error.cause, "webhooks that were cut have no outcome yet");
        }
        self.store().close().await;
        if let Some(cluster) = self.cluster() {
            cluster.leave().await;
        }
    }

    /// Sends the spans that wait to the collector, for less than a second. The hub records none after it.
    pub async fn flush_spans(&self) {
        if let Some(recorder) = self.span_recorder() {
            recorder.close().await;
        }
    }

    /// Runs retention and posts what is due, now and completely. The background work does both without this call.
    pub async fn run_maintenance(&self) -> Result<()> {
        ops::maintenance::run_maintenance_pass(self, &self.frames).await?;
        outbox_worker::run_due_posts(self.delivery()).await
    }
}

/// Builds the layers below the protocols, from the bottom up.
async fn open_context(
    options: HubOptions,
    span_recorder: Option<SpanRecorder>,
) -> std::result::Result<HubContext, StartError> {
    let identity_state = IdentityState::new(&options)?;
    let local_streams = Arc::new(LocalStreams::new());
    let cluster = options.bus_url.as_ref().map(|_| {
        let clock = options.clock.clone();
        Arc::new(Cluster::new(
            clock,
            identity_state.clone(),
            local_streams.clone(),
        ))
    });
    let live_streams: Arc<dyn LiveStreams> = match &cluster {
        None => local_streams.clone(),
        Some(cluster) => cluster.live_streams(),
    };
    let store = Store::open(
        &options.data_dir,
        choose_database(&options),
        options.accept_damage,
        options.clock.clone(),
        live_streams.clone(),
    )
    .await?;
    let store = Arc::new(store);
    let newest_seq = store.newest_seq().await.map_err(unreadable_store)?;
    let seal_key = Arc::new(load_seal_key(&options, &store).await?);
    local_streams.init_from_store(store.trace_salt, newest_seq, seal_key.clone());
    if let Some(cluster) = &cluster {
        cluster.init_from_store(&store, newest_seq);
    }
    let clock_watch = Arc::new(start_clock_watch(&options, &store).await?);
    store.set_hub_settings(HubSettings {
        public_url: options.public_url.trim_end_matches('/').to_owned(),
        agent_turns: options.agent_turns,
        seal_key: Some(seal_key.clone()),
        quotas: options.quotas,
        clock_watch: Some(clock_watch.clone()),
    });
    let identity_peers = cluster.as_ref().map(|cluster| cluster.identity_peers());
    let identity = Arc::new(Identity::new(
        &options,
        store.clone(),
        identity_state,
        identity_peers,
    ));
    let delivery = Delivery::new(
        &options,
        store.clone(),
        identity.clone(),
        live_streams,
        seal_key.clone(),
        span_recorder.clone(),
    );
    Ok(HubContext::new(ContextParts {
        options,
        store,
        identity,
        delivery,
        cluster,
        seal_key,
        clock_watch,
        span_recorder,
    }))
}

/// Begins to watch the clock before anything is judged by it.
async fn start_clock_watch(
    options: &HubOptions,
    store: &Store,
) -> std::result::Result<ClockWatch, StartError> {
    let last_pass_at = store
        .read(async |tx| Ok(counters::read_setting(tx, counters::LAST_PASS_AT).await?))
        .await
        .map_err(unreadable_store)?;
    Ok(ClockWatch::start(
        options.clock.clone(),
        last_pass_at.map(UnixMicros),
    ))
}

fn choose_database(options: &HubOptions) -> DatabaseUrl {
    match (&options.simulated, &options.database_url) {
        (Some(machine), _) => DatabaseUrl::Simulated(machine.database.clone()),
        (None, Some(url)) => DatabaseUrl::Postgres(url.clone()),
        (None, None) => DatabaseUrl::in_data_dir(&options.data_dir, options.memory.page_caches),
    }
}

/// Loads the sealing key and records it in the database: a hub with another key would seal what no later hub can read.
async fn load_seal_key(
    options: &HubOptions,
    store: &Store,
) -> std::result::Result<SealKey, StartError> {
    let sealed = store
        .read(async |tx| Ok(seal_record::read_sealed_data(tx).await?))
        .await
        .map_err(unreadable_store)?;
    let seal_key =
        SealKey::load_or_create(&options.data_dir, options.seal_key_file.as_deref(), sealed)?;
    let fingerprint = seal_key.fingerprint();
    if sealed != SealedData::WithKey(fingerprint) {
        store
            .write(async move |txn| Ok(seal_record::record_seal_key(&txn.tx, fingerprint).await?))
            .await
            .map_err(unreadable_store)?;
    }
    Ok(seal_key)
}

/// Hubs of a cluster share their database and their sealing key.
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
