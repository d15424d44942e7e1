//! One hub per story: its own directory, a free port, a clock that only the story advances.

use crate::support::actors::{Agent, AnonymousClient, Caller, Operator, STEP_TIMEOUT};
use crate::support::front::Front;
use crate::support::postgres::Database;
use chorus_hub::Clock;
use chorus_server::{RunningServer, ServerSettings, start_server};
use chorus_wire::{secret::Secret, time::UnixMicros};
use std::sync::Arc;
use std::time::Duration;

pub const OPERATOR_KEY: &str = "operator-key-of-the-stories";
/// A leap of the clock after which everything stored seems old.
pub const YEAR_MICROS: i64 = 365 * 86_400 * 1_000_000;

pub struct Hub {
    /// One, or several that share a database.
    running: Vec<RunningServer>,
    front: Option<Front>,
    pub url: String,
    pub settings: ServerSettings,
    pub http: reqwest::Client,
    // Dropped last: the server must be gone before its files and its database are.
    pub dir: Arc<tempfile::TempDir>,
    /// Directories of the hubs after the first, and how their settings differ.
    other_dirs: Vec<tempfile::TempDir>,
    difference: fn(&mut ServerSettings),
    _database: Option<Database>,
}

impl Hub {
    /// On SQLite with default settings.
    pub async fn fresh() -> Self {
        Self::sqlite(|_| ()).await
    }

    pub async fn sqlite(with: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::new(None, with).await
    }

    /// `None` without PostgreSQL.
    pub async fn postgres(with: impl FnOnce(&mut ServerSettings)) -> Option<Self> {
        let database = Database::fresh().await?;
        Some(Self::new(Some(database), with).await)
    }

    /// Two hubs, the second with differing settings.
    pub async fn cluster_with_difference(
        with: impl FnOnce(&mut ServerSettings),
        difference: fn(&mut ServerSettings),
    ) -> Option<Self> {
        let mut hub = Self::new_stopped_cluster(with).await?;
        hub.difference = difference;
        hub.open().await;
        Some(hub)
    }

    /// Two hubs with the same settings on one database behind a front; `None` without PostgreSQL or NATS.
    pub async fn cluster(with: impl FnOnce(&mut ServerSettings)) -> Option<Self> {
        Self::cluster_with_difference(with, |_| ()).await
    }

    async fn new_stopped_cluster(with: impl FnOnce(&mut ServerSettings)) -> Option<Self> {
        let bus = tokio::task::spawn_blocking(crate::support::nats::shared_server_url)
            .await
            .unwrap()?;
        let database = Database::fresh().await?;
        let front = Front::before(Vec::new()).await;
        let url = format!("http://{}", front.addr);
        let mut hub = Self::new_stopped(Some(database), |settings| {
            settings.hub.bus_url = Some(Secret::new(bus));
            settings.public_url = Some(url.clone());
            let key = settings.hub.data_dir.join("shared.key");
            std::fs::write(&key, "5".repeat(64)).unwrap();
            settings.hub.seal_key_file = Some(key);
            with(settings);
        });
        hub.other_dirs.push(tempfile::tempdir().unwrap());
        (hub.url, hub.front) = (url, Some(front));
        // Every request goes to the next hub.
        hub.http = client(|builder| builder.pool_max_idle_per_host(0));
        Some(hub)
    }

    async fn new(database: Option<Database>, with: impl FnOnce(&mut ServerSettings)) -> Self {
        let mut hub = Self::new_stopped(database, with);
        hub.open().await;
        hub
    }

    fn new_stopped(database: Option<Database>, with: impl FnOnce(&mut ServerSettings)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let mut settings = ServerSettings::with_data_dir(dir.path());
        settings.listen = ([127, 0, 0, 1], 0).into();
        settings.rate_limit = 0;
        settings.hub.operator_keys = vec![Secret::new(OPERATOR_KEY)];
        settings.hub.allow_private_endpoints = true;
        settings.hub.clock = Clock::manual_at(UnixMicros::parse("2026-03-20T10:00:00Z").unwrap());
        settings.hub.database_url = database.as_ref().map(|d| Secret::new(&d.url));
        with(&mut settings);
        let (http, url) = (client(|builder| builder), String::new());
        Self {
            running: Vec::new(),
            front: None,
            url,
            settings,
            http,
            dir,
            other_dirs: Vec::new(),
            difference: |_| (),
            _database: database,
        }
    }

    async fn open(&mut self) {
        let others = self.other_dirs.iter().map(|dir| {
            let mut settings = self.settings.clone();
            settings.hub.data_dir = dir.path().into();
            (self.difference)(&mut settings);
            settings
        });
        for settings in std::iter::once(self.settings.clone()).chain(others) {
            let running = within(STEP_TIMEOUT, start_server(settings))
                .await
                .expect("a start in time")
                .expect("the hub starts");
            self.running.push(running);
        }
        self.await_peers(self.running.len() - 1).await;
        match &self.front {
            Some(front) => front.turn_to(self.running.iter().map(RunningServer::addr).collect()),
            None => self.url = self.running[0].url(),
        }
    }

    /// Waits until each hub knows this many peers.
    pub async fn await_peers(&self, others: usize) {
        let known = async || {
            self.running
                .iter()
                .all(|one| one.hub().peer_count() == others)
        };
        eventually("the hubs know one another", known).await;
    }

    /// Stops one of several hubs.
    pub async fn stop_one(&mut self, number: usize) {
        within(STEP_TIMEOUT, self.running.remove(number).stop())
            .await
            .expect("a stop in time");
        if let Some(front) = &self.front {
            front.turn_to(self.running.iter().map(RunningServer::addr).collect());
        }
    }

    /// Stops every hub in an orderly way.
    pub async fn stop(&mut self) {
        for running in std::mem::take(&mut self.running) {
            within(STEP_TIMEOUT, running.stop())
                .await
                .expect("a stop in time");
        }
    }

    /// Stops the hub and starts it on the same data, with the same clock and another port.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.open().await;
    }

    /// Starts the hub again with another seal key, after its operator gave up the one before.
    pub async fn restart_with_seal_key(&mut self, key: &str) {
        self.stop().await;
        let data_dir = self.dir.path().to_owned();
        chorus_hub::ops::forget_seal_key(&data_dir, None)
            .await
            .expect("the hub is stopped");
        std::fs::write(data_dir.join("seal.key"), key).unwrap();
        self.open().await;
    }

    /// A second hub on the same settings, or its refusal.
    pub async fn start_second(&self) -> Result<RunningServer, String> {
        start_server(self.settings.clone())
            .await
            .map_err(|refusal| refusal.to_string())
    }

    /// A second hub on the same database, with its own directory.
    pub async fn start_second_in_other_dir(&self) -> Result<RunningServer, String> {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut settings = self.settings.clone();
        settings.hub.data_dir = elsewhere.path().into();
        start_server(settings)
            .await
            .map_err(|refusal| refusal.to_string())
    }

    /// Runs the maintenance that a hub runs every minute.
    pub async fn maintain(&self) {
        for running in &self.running {
            running.hub().run_maintenance().await.expect("it trims");
        }
    }

    pub fn advance(&self, by: Duration) {
        self.settings.hub.clock.advance(by);
    }

    /// Sets the clock without time passing.
    pub fn leap(&self, micros: i64) {
        self.settings.hub.clock.leap(micros);
    }

    /// The address for raw TCP connections.
    pub fn addr(&self) -> std::net::SocketAddr {
        self.front
            .as_ref()
            .map_or_else(|| self.running[0].addr(), |front| front.addr)
    }

    /// The same agent at one of several hubs, by its number.
    pub fn agent_at_hub(&self, number: usize, agent: &Agent) -> Agent {
        let caller = Caller::new(&self.http, &self.running[number].url(), None);
        Agent::new(&caller, &agent.id, &agent.key)
    }

    /// The same agent at a hub that a story has started in addition.
    pub fn agent_at_running(&self, running: &RunningServer, agent: &Agent) -> Agent {
        Agent::new(
            &Caller::new(&self.http, &running.url(), None),
            &agent.id,
            &agent.key,
        )
    }

    /// How many peers each hub knows.
    pub fn peer_counts(&self) -> Vec<usize> {
        self.running
            .iter()
            .map(|running| running.hub().peer_count())
            .collect()
    }

    /// The hub with this number, without its HTTP server.
    pub fn hub_at(&self, number: usize) -> &chorus_hub::Hub {
        self.running[number].hub()
    }

    fn caller(&self, key: Option<&str>) -> Caller {
        Caller::new(&self.http, &self.url, key)
    }

    pub fn anonymous(&self) -> AnonymousClient {
        AnonymousClient(self.caller(None))
    }

    pub fn operator(&self) -> Operator {
        Operator(self.caller(Some(OPERATOR_KEY)))
    }

    /// `{name}@chorus`, registered.
    pub async fn agent(&self, name: &str) -> Agent {
        self.agent_with(&format!("{name}@chorus"), &serde_json::json!({}))
            .await
    }

    /// The same with a webhook.
    pub async fn agent_with_webhook(&self, name: &str, endpoint: &str) -> Agent {
        self.agent_with(
            &format!("{name}@chorus"),
            &serde_json::json!({"endpoint": endpoint}),
        )
        .await
    }

    /// A registration with more in it than the plain one.
    pub async fn agent_with(&self, id: &str, more: &serde_json::Value) -> Agent {
        let mut body = crate::support::actors::registration(id);
        let extra = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(extra);
        let data = self.anonymous().post("/register", &body).await.data(201);
        Agent::new(
            &self.caller(None),
            id,
            data["api_key"].as_str().expect("a key"),
        )
    }

    /// The same agent after the hub has moved to another port.
    pub fn reconnect(&self, agent: &Agent) -> Agent {
        Agent::new(&self.caller(None), &agent.id, &agent.key)
    }
}

/// A client with no trusted certificates and no proxy: every address in these stories is loopback.
fn client(with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder) -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls);
    with(builder).build().unwrap()
}

/// Polls until `ready` returns true; a bounded wait for something that happens inside the hub.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ready: impl FnMut() -> F) {
    let asking = async {
        while !ready().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(STEP_TIMEOUT, asking)
        .await
        .unwrap_or_else(|| panic!("never: {what}"));
}

/// What `work` comes to, or `None` when it takes longer than `limit`. Counted in small steps, so that a machine that stands
/// still for a while does not use the time up.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let steps = async {
        for _ in 0..100 {
            tokio::time::sleep(limit / 100).await;
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = steps => None,
    }
}
