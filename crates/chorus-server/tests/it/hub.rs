//! A hub of its own for every story: fresh directory, free port, time held still.

use crate::actors::{Agent, Anyone, Caller, Operator, PATIENCE};
use crate::postgres::Database;
use chorus_hub::Clock;
use chorus_server::{Running, Settings, start};
use chorus_wire::{secret::Secret, time::Micros};
use std::sync::Arc;
use std::time::Duration;

pub const OPERATOR_KEY: &str = "operator-key-of-the-stories";

pub struct Hub {
    running: Option<Running>,
    pub url: String,
    pub settings: Settings,
    pub http: reqwest::Client,
    // Dropped last: the server must be gone before its files and its database are.
    pub dir: Arc<tempfile::TempDir>,
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

    async fn new(database: Option<Database>, with: impl FnOnce(&mut Settings)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let mut settings = Settings::at(dir.path());
        settings.listen = ([127, 0, 0, 1], 0).into();
        settings.rate_limit = 0;
        settings.hub.operator_keys = vec![Secret::new(OPERATOR_KEY)];
        settings.hub.allow_private_endpoints = true;
        settings.hub.clock = Clock::held(Micros::parse("2026-03-20T10:00:00Z").unwrap());
        settings.hub.database = database.as_ref().map(|d| Secret::new(&d.url));
        with(&mut settings);
        let running =
            within(PATIENCE, start(settings.clone())).await.expect("a start in time").expect("the hub starts");
        let url = running.url();
        Self { running: Some(running), url, settings, http: client(), dir, _database: database }
    }

    /// Stops it in good order.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            within(PATIENCE, running.stop()).await.expect("a stop in time");
        }
    }

    /// Stops it and opens it again on the same data; its clock goes on from where it was, its port is another.
    pub async fn restart(&mut self) {
        self.stop().await;
        let starting = start(self.settings.clone());
        let running = within(PATIENCE, starting).await.expect("a start in time").expect("the hub starts again");
        self.url = running.url();
        self.running = Some(running);
    }

    /// A second hub on the same settings, or what it says instead.
    pub async fn second(&self) -> Result<Running, String> {
        start(self.settings.clone()).await.map_err(|refusal| refusal.to_string())
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
        self.running.as_ref().expect("a running hub").hub().maintain().await.expect("it trims");
    }

    pub fn advance(&self, by: Duration) {
        self.settings.hub.clock.advance(by);
    }

    /// Where to connect without a library in between.
    pub fn addr(&self) -> std::net::SocketAddr {
        self.running.as_ref().expect("a running hub").addr()
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
        self.agent_like(&format!("{name}@chorus"), &serde_json::json!({})).await
    }

    /// The same with a webhook.
    pub async fn agent_at(&self, name: &str, endpoint: &str) -> Agent {
        self.agent_like(&format!("{name}@chorus"), &serde_json::json!({"endpoint": endpoint})).await
    }

    /// A registration with more in it than the plain one.
    pub async fn agent_like(&self, id: &str, more: &serde_json::Value) -> Agent {
        let mut body = crate::actors::registration(id);
        let extra = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(extra);
        let data = self.anyone().post("/register", &body).await.data(201);
        Agent::new(&self.caller(None), id, data["api_key"].as_str().expect("a key"))
    }

    /// The same agent after the hub has moved to another port.
    pub fn again(&self, agent: &Agent) -> Agent {
        Agent::new(&self.caller(None), &agent.id, &agent.key)
    }
}

/// A client that trusts nobody and goes through no proxy: every address in these stories is loopback.
fn client() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls)
        .build()
        .unwrap()
}

/// Asks again until `ready` says yes; a bounded wait for something that happens behind the door.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ready: impl FnMut() -> F) {
    let asking = async {
        while !ready().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(PATIENCE, asking).await.unwrap_or_else(|| panic!("never: {what}"));
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
