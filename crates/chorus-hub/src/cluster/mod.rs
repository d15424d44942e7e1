//! Several hubs that share one PostgreSQL database and one NATS. Each hub reads the log by itself and publishes it to its own
//! streams, in sequence order; NATS only wakes it and carries which stream accepted what (D-80).

mod budget_sync;
mod bus_connection;
mod cluster_streams;
mod frame_stream;
mod hub_link;
mod log_follower;
mod membership;
mod message_auth;
mod nats;
mod nats_access;
mod peer_client;
mod peer_server;
mod progress_watch;
mod protocol;
mod replay_window;

pub(crate) use crate::bus::RequestError;
pub(crate) use frame_stream::{FrameHandler, FrameStream};
pub(crate) use hub_link::HubLink;
pub(crate) use protocol::{FrameQuery, SharedSettings};

use crate::clock::Clock;
use crate::delivery::{LiveStreams, LocalStreams};
use crate::identity::{IdentityPeers, IdentityState};
use crate::seal::BusKey;
use crate::settings::BusFiles;
use crate::store::{LogSeq, Store};
use budget_sync::BudgetSync;
use bus_connection::BusConnection;
use chorus_wire::secret::Secret;
use cluster_streams::ClusterStreams;
use frame_stream::RegisteredFrames;
use log_follower::LogFollower;
use membership::Membership;
use message_auth::{MessageAuth, MessageKind};
use nats::NatsLink;
use peer_client::{ANNOUNCEMENT_SUBJECT, PeerClient, SETTINGS_SUBJECT};
use peer_server::PeerServer;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// This hub as a member of a cluster: one type for each concern, and the tasks that run them.
pub(crate) struct Cluster {
    client: Arc<PeerClient>,
    membership: Arc<Membership>,
    log_follower: Arc<LogFollower>,
    budget_sync: Arc<BudgetSync>,
    frame_stream: Arc<FrameStream>,
    live_streams: Arc<ClusterStreams>,
    registered_frames: RegisteredFrames,
    /// Aborted when the cluster is left or dropped.
    tasks: Mutex<JoinSet<()>>,
}

/// Connects to NATS.
pub(crate) async fn connect_nats(url: &Secret, files: &BusFiles) -> Result<HubLink, String> {
    Ok(HubLink::Nats(NatsLink::connect(url, files).await?))
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// Builds the parts. They exist before the store is open, because the store publishes to them.
    pub fn new(clock: Clock, identity: IdentityState, local_streams: Arc<LocalStreams>) -> Self {
        let registered_frames = RegisteredFrames::default();
        let client = Arc::new(PeerClient::new());
        let membership = Arc::new(Membership::new(
            client.clone(),
            clock,
            identity.presence.clone(),
            registered_frames.clone(),
        ));
        let log_follower = Arc::new(LogFollower::new(client.clone()));
        let live_streams = Arc::new(ClusterStreams {
            local_streams,
            membership: membership.clone(),
            log_follower: log_follower.clone(),
            key_cache: identity.key_cache.clone(),
            registered_frames: registered_frames.clone(),
        });
        Self {
            budget_sync: Arc::new(BudgetSync::new(
                client.clone(),
                identity.rate_budgets.clone(),
            )),
            frame_stream: Arc::new(FrameStream::new(client.clone(), registered_frames.clone())),
            client,
            membership,
            log_follower,
            live_streams,
            registered_frames,
            tasks: Mutex::default(),
        }
    }

    /// The live streams of this hub and, as far as it knows, of its peers.
    pub fn live_streams(&self) -> Arc<dyn LiveStreams> {
        self.live_streams.clone()
    }

    /// How identity reaches the other hubs.
    pub fn identity_peers(&self) -> IdentityPeers {
        IdentityPeers {
            presence: self.membership.clone(),
            budgets: self.budget_sync.clone(),
        }
    }

    /// How the frame protocol reaches the other hubs.
    pub fn frame_stream(&self) -> &FrameStream {
        &self.frame_stream
    }

    /// Registered once, before the cluster is joined.
    pub fn register_frames(&self, handler: Box<dyn FrameHandler>) {
        self.registered_frames.register(handler);
    }

    /// The store is open, and its newest entry has this sequence.
    pub fn init_from_store(&self, store: &Arc<Store>, newest_seq: LogSeq) {
        self.log_follower.init_from_store(store, newest_seq);
    }

    /// Whether NATS is connected.
    pub fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    /// How many other hubs are known.
    pub fn peer_count(&self) -> usize {
        self.client.peers.peer_ids().len()
    }

    /// Joins the other hubs of this database. It returns after this hub knows its peers and they know it.
    pub async fn join(
        &self,
        link: HubLink,
        trace_salt: u32,
        bus_key: &BusKey,
        settings: SharedSettings,
    ) -> Result<(), String> {
        // The salt is unique to the database, so that two clusters can share one NATS.
        let subject_prefix = format!("chorus.{trace_salt:06x}");
        let message_auth = MessageAuth::new(bus_key, self.client.hub_id);
        let nats = Arc::new(BusConnection::new(link, subject_prefix, message_auth));
        let broadcasts = nats
            .subscribe(MessageKind::Announcement, ANNOUNCEMENT_SUBJECT)
            .await?;
        let own_requests = nats
            .subscribe(MessageKind::Request, &self.client.own_subject())
            .await?;
        let settings_questions = nats.subscribe_unsigned(SETTINGS_SUBJECT).await?;
        self.client.set_connection(nats.clone());
        let (consumer, position) = self.frame_stream.open(&nats).await?;
        let server = Arc::new(PeerServer::new(
            self.client.clone(),
            self.membership.clone(),
            self.log_follower.clone(),
            self.budget_sync.clone(),
            self.registered_frames.clone(),
            settings.clone(),
        ));
        self.spawn(self.frame_stream.clone().follow(consumer, position));
        self.spawn(server.run(broadcasts, own_requests, settings_questions));
        self.spawn(self.membership.clone().send_deltas());
        self.spawn(self.membership.clone().run_heartbeat());
        let connects = nats.watch_connects();
        self.spawn(self.log_follower.clone().wake_on_connect(connects));
        self.spawn(self.budget_sync.clone().run());
        let mut settings_answers = nats.ask_unsigned(SETTINGS_SUBJECT).await?;
        self.membership.discover_peers().await;
        PeerClient::check_seal_key(&settings, &mut settings_answers)?;
        self.client.check_shared_settings(&settings).await
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock_mutex(&self.tasks).spawn(task);
    }

    /// Leaves the cluster: peers expect nothing more of this hub.
    pub async fn leave(&self) {
        // First, so that no task announces this hub again.
        lock_mutex(&self.tasks).abort_all();
        self.client.announce_leave().await;
    }
}
