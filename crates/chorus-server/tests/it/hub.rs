//! A hub of its own for every story: fresh directory, free port, time held still.

use crate::actors::{Agent, Anyone, Caller, Operator, PATIENCE};
use crate::front::Front;
use crate::postgres::Database;
use chorus_hub::Clock;
use chorus_server::{Running, Settings, start};
use chorus_wire::{secret::Secret, time::Micros};
use std::sync::Arc;
use std::time::Duration;

pub const OPERATOR_KEY: &str = "operator-key-of-the-stories";

pub struct Hub {
    /// One, or several that share a database.
    running: Vec<Running>,
    front: Option<Front>,
    pub url: String,
    pub settings: Settings,
    pub http: reqwest::Client,
    // Dropped last: the server must be gone before its files and its database are.
    pub dir: Arc<tempfile::TempDir>,
    /// Directories of the hubs beside the first, and what is different there.
    beside: Vec<tempfile::TempDir>,
    apart: fn(&mut Settings),
    _database: Option<Database>,
}

impl Hub {
    /// On the embedded database, with nothing else set.
    pub async fn fresh() -> Self {
        Self::sqlite(|_| ()).await
    }

    pub async fn sqlite(with: impl FnOnce(&mut Settings)) -> Self {
        Self::new(None, with).await
    }

    /// `None` where there is no PostgreSQL to be had.
    pub async fn postgres(with: impl FnOnce(&mut Settings)) -> Option<Self> {
        let database = Database::fresh().await?;
        Some(Self::new(Some(database), with).await)
    }

    /// Two hubs that are set up differently.
    pub async fn cluster_apart(
        with: impl FnOnce(&mut Settings),
        apart: fn(&mut Settings),
    ) -> Option<Self> {
        let mut hub = Self::cluster_unopened(with).await?;
        hub.apart = apart;
        hub.open().await;
        Some(hub)
    }

    /// Two hubs on one database behind a front, alike; `None` where there is no PostgreSQL or no NATS to be had.
    pub async fn cluster(with: impl FnOnce(&mut Settings)) -> Option<Self> {
        Self::cluster_apart(with, |_| ()).await
    }

    async fn cluster_unopened(with: impl FnOnce(&mut Settings)) -> Option<Self> {
        let bus = tokio::task::spawn_blocking(crate::nats::url)
            .await
            .unwrap()?;
        let database = Database::fresh().await?;
        let front = Front::before(Vec::new()).await;
        let url = format!("http://{}", front.addr);
        let mut hub = Self::unopened(Some(database), |settings| {
            settings.hub.bus = Some(Secret::new(bus));
            settings.public_url = Some(url.clone());
            let key = settings.hub.data_dir.join("shared.key");
            std::fs::write(&key, "5".repeat(64)).unwrap();
            settings.hub.seal_key_file = Some(key);
            with(settings);
        });
        hub.beside.push(tempfile::tempdir().unwrap());
        (hub.url, hub.front) = (url, Some(front));
        // Every request goes to the next hub.
        hub.http = client(|builder| builder.pool_max_idle_per_host(0));
        Some(hub)
    }

    async fn new(database: Option<Database>, with: impl FnOnce(&mut Settings)) -> Self {
        let mut hub = Self::unopened(database, with);
        hub.open().await;
        hub
    }

    fn unopened(database: Option<Database>, with: impl FnOnce(&mut Settings)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let mut settings = Settings::at(dir.path());
        settings.listen = ([127, 0, 0, 1], 0).into();
        settings.rate_limit = 0;
        settings.hub.operator_keys = vec![Secret::new(OPERATOR_KEY)];
        settings.hub.allow_private_endpoints = true;
        settings.hub.clock = Clock::held(Micros::parse("2026-03-20T10:00:00Z").unwrap());
        settings.hub.database = database.as_ref().map(|d| Secret::new(&d.url));
        with(&mut settings);
        let (http, url) = (client(|builder| builder), String::new());
        Self {
            running: Vec::new(),
            front: None,
            url,
            settings,
            http,
            dir,
            beside: Vec::new(),
            apart: |_| (),
            _database: database,
        }
    }

    async fn open(&mut self) {
        let others = self.beside.iter().map(|dir| {
            let mut settings = self.settings.clone();
            settings.hub.data_dir = dir.path().into();
            (self.apart)(&mut settings);
            settings
        });
        for settings in std::iter::once(self.settings.clone()).chain(others) {
            let running = within(PATIENCE, start(settings))
                .await
                .expect("a start in time")
                .expect("the hub starts");
            self.running.push(running);
        }
        self.know(self.running.len() - 1).await;
        match &self.front {
            Some(front) => front.turn_to(self.running.iter().map(Running::addr).collect()),
            None => self.url = self.running[0].url(),
        }
    }

    /// Over when each of several hubs knows so many others.
    pub async fn know(&self, others: usize) {
        let known = async || self.running.iter().all(|one| one.hub().others() == others);
        eventually("the hubs know one another", known).await;
    }

    /// One of several hubs stops, and the others go on.
    pub async fn stop_one(&mut self, number: usize) {
        within(PATIENCE, self.running.remove(number).stop())
            .await
            .expect("a stop in time");
        if let Some(front) = &self.front {
            front.turn_to(self.running.iter().map(Running::addr).collect());
        }
    }

    /// Stops it in good order.
    pub async fn stop(&mut self) {
        for running in std::mem::take(&mut self.running) {
            within(PATIENCE, running.stop())
                .await
                .expect("a stop in time");
        }
    }

    /// Stops it and opens it again on the same data; its clock goes on from where it was, its port is another.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.open().await;
    }

    /// A second hub on the same settings, or what it says instead.
    pub async fn second(&self) -> Result<Running, String> {
        start(self.settings.clone())
            .await
            .map_err(|refusal| refusal.to_string())
    }

    /// A second hub on the same database, with a directory of its own.
    pub async fn second_elsewhere(&self) -> Result<Running, String> {
        let elsewhere = tempfile::tempdir().unwrap();
        let mut settings = self.settings.clone();
        settings.hub.data_dir = elsewhere.path().into();
        start(settings).await.map_err(|refusal| refusal.to_string())
    }

    /// Trims what is past its time, as the hub does by itself every minute.
    pub async fn maintain(&self) {
        for running in &self.running {
            running.hub().maintain().await.expect("it trims");
        }
    }

    pub fn advance(&self, by: Duration) {
        self.settings.hub.clock.advance(by);
    }

    /// Where to connect without a library in between.
    pub fn addr(&self) -> std::net::SocketAddr {
        self.front
            .as_ref()
            .map_or_else(|| self.running[0].addr(), |front| front.addr)
    }

    /// The same story at one of several hubs, by its number.
    pub fn at(&self, number: usize, agent: &Agent) -> Agent {
        let caller = Caller::new(&self.http, &self.running[number].url(), None);
        Agent::new(&caller, &agent.id, &agent.key)
    }

    /// The same at a hub that a story has started beside them.
    pub fn there(&self, running: &Running, agent: &Agent) -> Agent {
        Agent::new(
            &Caller::new(&self.http, &running.url(), None),
            &agent.id,
            &agent.key,
        )
    }

    /// How many others each of them knows.
    pub fn known(&self) -> Vec<usize> {
        self.running
            .iter()
            .map(|running| running.hub().others())
            .collect()
    }

    /// One of them, without its doors.
    pub fn inside(&self, number: usize) -> &chorus_hub::Hub {
        self.running[number].hub()
    }

    fn caller(&self, key: Option<&str>) -> Caller {
        Caller::new(&self.http, &self.url, key)
    }

    pub fn anyone(&self) -> Anyone {
        Anyone(self.caller(None))
    }

    pub fn operator(&self) -> Operator {
        Operator(self.caller(Some(OPERATOR_KEY)))
    }

    /// `{name}@chorus`, registered.
    pub async fn agent(&self, name: &str) -> Agent {
        self.agent_like(&format!("{name}@chorus"), &serde_json::json!({}))
            .await
    }

    /// The same with a webhook.
    pub async fn agent_at(&self, name: &str, endpoint: &str) -> Agent {
        self.agent_like(
            &format!("{name}@chorus"),
            &serde_json::json!({"endpoint": endpoint}),
        )
        .await
    }

    /// A registration with more in it than the plain one.
    pub async fn agent_like(&self, id: &str, more: &serde_json::Value) -> Agent {
        let mut body = crate::actors::registration(id);
        let extra = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(extra);
        let data = self.anyone().post("/register", &body).await.data(201);
        Agent::new(
            &self.caller(None),
            id,
            data["api_key"].as_str().expect("a key"),
        )
    }

    /// The same agent after the hub has moved to another port.
    pub fn again(&self, agent: &Agent) -> Agent {
        Agent::new(&self.caller(None), &agent.id, &agent.key)
    }
}

/// A client that trusts nobody and goes through no proxy: every address in these stories is loopback.
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

/// Asks again until `ready` says yes; a bounded wait for something that happens behind the door.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ready: impl FnMut() -> F) {
    let asking = async {
        while !ready().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(PATIENCE, asking)
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
