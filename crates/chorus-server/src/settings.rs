//! What a server is started with, and the handle of one that runs.

use chorus_hub::{Options, hub::StartError};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything `chorus serve` can be told; the binary fills it from flags, variables and a file.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    /// What the hub calls itself to the outside; the listen address without it.
    pub public_url: Option<String>,
    /// `server_name` in the discovery document.
    pub server_name: String,
    /// Requests per key (and per address for those without) and minute; 0 is off.
    pub rate_limit: u32,
    /// Certificate chain and key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub hub: Options,
}

impl Settings {
    /// A server with nothing set, on loopback and `data_dir`.
    pub fn at(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3000)),
            public_url: None,
            server_name: "Chorus".into(),
            rate_limit: 600,
            tls: None,
            hub: Options::at(data_dir),
        }
    }
}

/// A server that listens. Dropping it stops it without ceremony; [`Running::stop`] drains first.
pub struct Running {
    addr: SocketAddr,
}

impl Running {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:3000`, or https with TLS.
    pub fn url(&self) -> String {
        todo!()
    }

    /// Refuses new work, tells open streams to come back later, finishes what is under way, closes the store: < 5 s.
    pub async fn stop(self) {
        todo!()
    }
}

/// Opens the hub and listens. When it returns, requests are answered.
pub async fn start(_settings: Settings) -> Result<Running, StartError> {
    todo!()
}
