//! One run of one hub in a history: the real hub, on a runtime of its own with simulated time. Dropping it is a crash.

use crate::bus::{SimulatedBus, SimulatedLink};
use crate::database::{DatabaseServer, HubDatabase};
use crate::network::Network;
use crate::perform::ReachableHub;
use chorus_hub::idempotent_request::IdempotentRequests;
use chorus_hub::simulation::SimulatedMachine;
use chorus_hub::{Clock, Hub, HubOptions};
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::LocalSet;

/// Completes after this much simulated time.
pub async fn pass_time(duration: Duration) {
    let _ = tokio::time::timeout(duration, std::future::pending::<()>()).await;
}

pub const OPERATOR_KEY: &str = "simulated-operator-key";

/// What the hubs of a history have around them.
#[derive(Clone)]
pub struct SimulatedEnvironment {
    pub dir: PathBuf,
    pub seal_key_file: PathBuf,
    pub clock: Clock,
    pub server: Arc<DatabaseServer>,
    pub network: Arc<Network>,
    /// `None` when the history has one hub.
    pub bus: Option<SimulatedBus>,
}

type OpenedHub = Arc<Mutex<Option<Result<Hub, String>>>>;

pub struct SimulatedHub {
    opened: OpenedHub,
    requests: Arc<IdempotentRequests>,
    tasks: LocalSet,
    runtime: tokio::runtime::Runtime,
    is_dying: Arc<AtomicBool>,
    link: Option<Arc<SimulatedLink>>,
    bus: Option<SimulatedBus>,
    data_dir: PathBuf,
}

impl SimulatedHub {
    /// Begins to open a hub; `run` numbers the runs of a history.
    pub fn start(environment: &SimulatedEnvironment, run: usize) -> Self {
        let is_dying = Arc::<AtomicBool>::default();
        let link = environment.bus.as_ref().map(SimulatedBus::open_link);
        let data_dir = environment.dir.join(format!("run-{run}"));
        let options = hub_options(environment, &data_dir, &is_dying, link.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let tasks = LocalSet::new();
        let opened = OpenedHub::default();
        let slot = opened.clone();
        tasks.spawn_local(async move {
            let hub = Hub::open(options).await.map_err(|e| format!("{e:?}"));
            *slot.lock().unwrap() = Some(hub);
        });
        Self {
            opened,
            requests: Arc::default(),
            tasks,
            runtime,
            is_dying,
            link,
            bus: environment.bus.clone(),
            data_dir,
        }
    }

    /// The hub, once it is open.
    pub fn hub(&self) -> Option<Hub> {
        match &*self.opened.lock().unwrap() {
            Some(Ok(hub)) => Some(hub.clone()),
            Some(Err(_)) | None => None,
        }
    }

    /// The hub as clients reach it, once it is open.
    pub fn reachable_hub(&self) -> Option<ReachableHub> {
        self.hub().map(|hub| ReachableHub {
            hub,
            requests: self.requests.clone(),
        })
    }

    /// Why it did not start: its database was away, or a commit failed.
    pub fn start_error(&self) -> Option<String> {
        match &*self.opened.lock().unwrap() {
            Some(Err(cause)) => Some(cause.clone()),
            Some(Ok(_)) | None => None,
        }
    }

    pub fn is_dying(&self) -> bool {
        self.is_dying.load(Ordering::SeqCst)
    }

    pub fn link_id(&self) -> Option<usize> {
        self.link.as_ref().map(|link| link.id)
    }

    /// Lets this much time pass for the hub.
    pub fn tick(&self, duration: Duration) {
        self.tasks.block_on(&self.runtime, pass_time(duration));
    }

    pub fn spawn(&self, work: impl Future<Output = ()> + 'static) -> tokio::task::AbortHandle {
        self.tasks.spawn_local(work).abort_handle()
    }

    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.tasks.block_on(&self.runtime, work)
    }
}

impl Drop for SimulatedHub {
    fn drop(&mut self) {
        if let (Some(bus), Some(link)) = (&self.bus, &self.link) {
            bus.close_link(link.id);
        }
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

fn hub_options(
    environment: &SimulatedEnvironment,
    data_dir: &Path,
    is_dying: &Arc<AtomicBool>,
    link: Option<Arc<SimulatedLink>>,
) -> HubOptions {
    let has_peers = link.is_some();
    let placeholder = |text: &str| has_peers.then(|| Secret::new(text.to_owned()));
    HubOptions {
        operator_keys: vec![Secret::new(OPERATOR_KEY.to_owned())],
        allow_private_endpoints: true,
        webhook_timeout: Duration::from_secs(2),
        seal_key_file: Some(environment.seal_key_file.clone()),
        bus_url: placeholder("nats://simulated"),
        database_url: placeholder("postgres://simulated"),
        clock: environment.clock.clone(),
        simulated: Some(SimulatedMachine {
            database: Arc::new(HubDatabase {
                server: environment.server.clone(),
                is_dying: is_dying.clone(),
            }),
            network: environment.network.clone(),
            bus: link.map(|link| link as Arc<dyn chorus_hub::bus::BusLink>),
        }),
        ..HubOptions::for_data_dir(data_dir)
    }
}
