//! The hub: its settings and the rooms behind it.

use crate::bus::{Bus, BusFiles, Local, Mesh};
use crate::channel::seal::Seal;
use crate::delivery::Ending;
use crate::delivery::outgoing::{Outgoing, Policy};
use crate::delivery::pool::{self, Pool};
use crate::frame::Frames;
use crate::identity::{Keyring, budget::Budgets};
use crate::joined::Joined;
use crate::market::liveness::Liveness;
use crate::store::{Entry, Publish, Store, Terms, log};
use crate::{Clock, Result, ops};
use chorus_wire::market::credits::Credits;
use chorus_wire::secret::Secret;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a hub is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Holds the database file, the lock and the hub's own keys.
    pub data_dir: PathBuf,
    /// `postgres://…`; without it the database is a file in `data_dir`.
    pub database: Option<Secret>,
    /// `nats://…`, which hubs that share a database need; without it this hub has its database alone.
    pub bus: Option<Secret>,
    /// Who this hub is there, and whom it trusts, as far as files say it.
    pub bus_files: BusFiles,
    /// The host part that short names stand for.
    pub host_name: String,
    pub operator_keys: Vec<Secret>,
    pub max_agents: Option<u64>,
    /// Webhooks may reach loopback and private addresses.
    pub allow_private_endpoints: bool,
    pub webhook_timeout: Duration,
    /// How long messages and activity are kept; forever without.
    pub retain: Option<Duration>,
    /// What every new owner is given.
    pub opening_grant: Credits,
    /// What the hub calls itself to the outside, in callbacks among other things.
    pub public_url: String,
    /// The key that secrets of others are sealed with; without it a file in `data_dir`. Hubs that share a database share it.
    pub seal_key_file: Option<PathBuf>,
    /// steps from agent to agent that may follow a person's word in a channel.
    pub agent_turns: u32,
    pub clock: Clock,
}

impl Options {
    /// The settings of a hub with nothing set, on `data_dir`.
    pub fn at(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            database: None,
            bus: None,
            bus_files: BusFiles::default(),
            host_name: "chorus".into(),
            operator_keys: Vec::new(),
            max_agents: None,
            allow_private_endpoints: false,
            webhook_timeout: chorus_wire::limits::WEBHOOK_DEADLINE,
            retain: None,
            opening_grant: Credits::hundredths(10_000),
            public_url: "http://127.0.0.1:3000".into(),
            seal_key_file: None,
            agent_turns: chorus_wire::limits::AGENT_TURNS,
            clock: Clock::system(),
        }
    }
}

/// Cheap to clone; every clone is the same hub.
#[derive(Clone)]
pub struct Hub(Arc<Rooms>);

struct Rooms {
    options: Options,
    store: Store,
    bus: Arc<dyn Bus>,
    mesh: Option<Arc<Mesh>>,
    keyring: Keyring,
    budgets: Arc<Budgets>,
    outgoing: Outgoing,
    pool: Pool,
    seal: Seal,
    frames: Frames,
    liveness: Liveness,
    /// Rung when something is owed to others.
    bell: Arc<tokio::sync::Notify>,
    opened: Duration,
    ready: Mutex<Option<Duration>>,
}

impl Hub {
    /// Opens the store (creating or migrating it), takes the lock on the data directory, starts the background work.
    pub async fn open(mut options: Options) -> std::result::Result<Self, StartError> {
        if options.bus.is_some() && options.database.is_none() {
            return Err(StartError::Bus(
                "hubs that share a bus share a database: it needs --database postgres://…".into(),
            ));
        }
        if options.bus.is_some() && options.seal_key_file.is_none() {
            let said = "hubs that share a bus share what they have sealed: it needs --seal-key-file, the same for all";
            return Err(StartError::Bus(said.into()));
        }
        if options.bus.is_some() {
            options.clock = options.clock.led();
        }
        let (alone, mesh) = (
            Arc::new(Local::new()),
            options.bus.as_ref().map(|_| Mesh::new()),
        );
        let bus: Arc<dyn Bus> = mesh
            .as_ref()
            .map_or_else(|| alone.clone() as Arc<dyn Bus>, |mesh| mesh.clone());
        let publish: Arc<dyn Publish> = mesh
            .as_ref()
            .map_or_else(|| alone.clone() as _, |mesh| mesh.clone() as _);
        let store = Store::open(
            &options.data_dir,
            options.database.as_ref(),
            options.clock.clone(),
            publish,
        )
        .await?;
        let refused = |e: chorus_wire::Error| StartError::Store {
            what: "the database could not be read".into(),
            cause: e.cause.unwrap_or(e.message),
        };
        let newest = store.newest().await.map_err(refused)?;
        mesh.as_ref().map_or_else(
            || alone.opened(store.salt, newest),
            |mesh| mesh.opened(store.salt, newest),
        );
        let seal = Seal::take(&options.data_dir, options.seal_key_file.as_deref())?;
        let public_url = options.public_url.trim_end_matches('/').to_owned();
        store.go_by(Terms {
            public_url,
            agent_turns: options.agent_turns,
        });
        let outgoing = Outgoing::new(Policy {
            allow_private: options.allow_private_endpoints,
            deadline: options.webhook_timeout,
            ..Policy::default()
        });
        let keyring = Keyring::new(&options.operator_keys);
        let budgets = Arc::new(Budgets::new(options.clock.clone()));
        let opened = options.clock.steady();
        let (frames, liveness) = (Frames::default(), Liveness::default());
        let hub = Self(Arc::new(Rooms {
            options,
            store,
            bus,
            mesh,
            keyring,
            budgets,
            outgoing,
            pool: Pool::default(),
            seal,
            frames,
            liveness,
            bell: Arc::default(),
            opened,
            ready: Mutex::default(),
        }));
        if let Err(refused) = hub.join().await {
            hub.close().await;
            return Err(refused);
        }
        ops::maintenance::recover(&hub).await.map_err(refused)?;
        ops::maintenance::start(&hub);
        Ok(hub)
    }

    async fn join(&self) -> std::result::Result<(), StartError> {
        let (Some(mesh), Some(url)) = (self.mesh(), &self.options().bus) else {
            return Ok(());
        };
        let behind = Box::new(Joined(self.downgrade()));
        mesh.join((url, &self.options().bus_files), self.store().salt, behind)
            .await
            .map_err(StartError::Bus)
    }

    pub fn options(&self) -> &Options {
        &self.0.options
    }

    pub fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn bus(&self) -> &dyn Bus {
        &*self.0.bus
    }

    /// The other hubs of this database; nothing when it has none.
    pub(crate) fn mesh(&self) -> Option<&Arc<Mesh>> {
        self.0.mesh.as_ref()
    }

    /// How many other hubs this one knows.
    pub fn others(&self) -> usize {
        self.mesh().map_or(0, |mesh| mesh.others())
    }

    /// The agent was heard, and every hub knows it.
    pub(crate) async fn heard(&self, agent: i64) {
        if self.was_heard(agent) {
            self.bus().told().await;
        }
    }

    /// The agent was heard; true when other hubs are being told.
    pub(crate) fn was_heard(&self, agent: i64) -> bool {
        let tell = self.liveness().beat(agent, self.clock().steady()) && self.mesh().is_some();
        if let Some(mesh) = self.mesh().filter(|_| tell) {
            mesh.heard(agent, Some(self.clock().steady()));
        }
        tell
    }

    /// The agent's endpoint refused a job.
    pub(crate) fn refused(&self, agent: i64) {
        if let Some(mesh) = self.mesh() {
            mesh.heard(agent, None);
        }
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.0.keyring
    }

    pub(crate) fn budgets(&self) -> &Arc<Budgets> {
        &self.0.budgets
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.0.outgoing
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(crate) fn liveness(&self) -> &Liveness {
        &self.0.liveness
    }

    pub(crate) fn frames(&self) -> &Frames {
        &self.0.frames
    }

    /// Ends every stream of a principal: its key was rotated, or it is gone.
    pub(crate) fn end_streams(&self, principal: i64, why: Ending) {
        self.bus().end(principal, why);
        self.frames().end(principal, why, self.clock().steady());
    }

    /// Something was put into the outbox: it goes out now, not at the next look.
    pub(crate) fn owes(&self) {
        self.0.bell.notify_one();
    }

    pub(crate) fn bell(&self) -> &Arc<tokio::sync::Notify> {
        &self.0.bell
    }

    /// The trace id of an entry of this hub's log.
    pub(crate) fn trace_id(&self, entry: &Entry) -> uuid::Uuid {
        log::trace_id(entry.seq, entry.at, self.store().salt)
    }

    /// When the store was last seen to take a write for `/ready`, on the steady clock.
    pub(crate) fn was_ready_at(&self) -> Option<Duration> {
        *self.0.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_ready_at(&self, at: Duration) {
        *self.0.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// How long this hub has been open.
    pub fn uptime(&self) -> Duration {
        self.clock().steady().saturating_sub(self.0.opened)
    }

    /// A hold on the hub that does not keep it open: for background work.
    pub(crate) fn downgrade(&self) -> impl Fn() -> Option<Hub> + Send + Sync + 'static {
        let weak = Arc::downgrade(&self.0);
        move || weak.upgrade().map(Hub)
    }

    /// Ends every open feed with a word to its reader. New ones are refused from here on.
    pub fn drain(&self) {
        self.bus().drain();
        self.frames().drain(self.clock().steady());
    }

    /// Commits what is queued and closes the store. After it every write answers `ERR_UNAVAILABLE`.
    pub async fn close(&self) {
        self.drain();
        self.store().close().await;
        if let Some(mesh) = self.mesh() {
            mesh.leave().await;
        }
    }

    /// Trims what is past its time and posts what is due, now and completely; the hub does both by itself all the time.
    pub async fn maintain(&self) -> Result<()> {
        ops::maintenance::pass(self).await?;
        pool::run_dry(self).await
    }
}

/// Why a hub did not start, said to whoever started it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another hub is running on {0}; stop it or choose another --data-dir")]
    Locked(String),
    #[error("{what}: {cause}")]
    Store { what: String, cause: String },
    #[error("the bus: {0}")]
    Bus(String),
}
