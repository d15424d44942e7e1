//! What a server is started with, and the handle of one that runs.

use crate::{
    accept, app_state::AppState, connection_limit::ConnectionLimit, ops::metrics, router, tls,
    trusted_proxies::TrustedNetwork,
};
use chorus_hub::{Hub, HubOptions};
use chorus_wire::limits;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// Everything `chorus serve` can be told; the binary fills it from flags, variables and a file.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    /// What the hub calls itself to the outside; the listen address without it.
    pub public_url: Option<String>,
    /// `server_name` in the discovery document.
    pub server_name: String,
    /// Requests per key (and per address for those without) and minute; 0 is off.
    pub rate_limit: u32,
    /// Proxies whose word about where a request comes from is taken (D-92).
    pub trusted_proxies: Vec<TrustedNetwork>,
    /// Connections that are open at once, streams among them.
    pub max_connections: usize,
    /// Certificate chain and key, both PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub hub: HubOptions,
}

impl ServerSettings {
    /// A server with nothing set, on loopback and `data_dir`.
    pub fn with_data_dir(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3000)),
            public_url: None,
            server_name: "Chorus".into(),
            rate_limit: 600,
            trusted_proxies: Vec::new(),
            max_connections: limits::CONNECTIONS_DEFAULT,
            tls: None,
            hub: HubOptions::for_data_dir(data_dir),
        }
    }
}

/// Why a server did not start, said to whoever started it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Hub(#[from] chorus_hub::hub::StartError),
    #[error("cannot listen on {addr}: {cause}")]
    Listen { addr: SocketAddr, cause: String },
    #[error("cannot use {path} for TLS: {cause}")]
    Tls { path: String, cause: String },
}

/// What closing the store may take beyond the connections' own time.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A server that listens. Dropping it stops it without ceremony; [`Running::stop`] drains first.
pub struct RunningServer {
    addr: SocketAddr,
    url: String,
    hub: Hub,
    shutdown: watch::Sender<bool>,
    accept_task: JoinHandle<()>,
    metrics_task: JoinHandle<()>,
}

impl RunningServer {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:3000`, or https with TLS.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The hub behind the doors.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Refuses new work, tells open streams to come back later, finishes what is under way, closes the store: < 5 s.
    pub async fn stop(mut self) {
        self.shutdown.send_replace(true);
        self.hub.drain_streams();
        if tokio::time::timeout(limits::SHUTDOWN_DEADLINE, &mut self.accept_task)
            .await
            .is_err()
        {
            tracing::warn!("some connections did not end in time and are cut");
        }
        // What is queued is committed first; a database that does not answer must not keep the process from ending.
        if tokio::time::timeout(STORE_CLOSE_TIMEOUT, self.hub.close())
            .await
            .is_err()
        {
            tracing::error!(
                "the store did not close in time; what was not acknowledged may be lost"
            );
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.accept_task.abort();
        self.metrics_task.abort();
    }
}

/// Opens the hub and listens. When it returns, requests are answered.
pub async fn start_server(settings: ServerSettings) -> Result<RunningServer, StartError> {
    // Certificates are read and the address is taken before the store is touched: what fails often fails early.
    let tls = settings
        .tls
        .as_ref()
        .map(|(chain, key)| tls::load_tls_config(chain, key))
        .transpose()?;
    let listen_error = |cause: std::io::Error| StartError::Listen {
        addr: settings.listen,
        cause: describe_listen_error(&cause),
    };
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(listen_error)?;
    let addr = listener.local_addr().map_err(listen_error)?;
    let url = local_url(addr, tls.is_some());
    let public_url = settings
        .public_url
        .as_deref()
        .unwrap_or(&url)
        .trim_end_matches('/')
        .to_owned();
    // The hub gives it to others too, long after the request that led to it.
    let hub = Hub::open(HubOptions {
        public_url: public_url.clone(),
        ..settings.hub.clone()
    })
    .await?;
    let state = AppState::new(hub.clone(), public_url, &settings);
    let (shutdown, shutdown_signal) = watch::channel(false);
    let connection_limit = ConnectionLimit::new(settings.max_connections, hub.clock().clone());
    let accept_task = tokio::spawn(accept::serve_connections(
        listener,
        tls,
        router::build_router(state),
        connection_limit,
        shutdown_signal,
    ));
    Ok(RunningServer {
        addr,
        url,
        hub,
        shutdown,
        accept_task,
        metrics_task: tokio::spawn(metrics::run_upkeep()),
    })
}

fn describe_listen_error(cause: &std::io::Error) -> String {
    if cause.kind() == std::io::ErrorKind::AddrInUse {
        "another program is using it; stop that one or choose another address with --listen".into()
    } else {
        cause.to_string()
    }
}

/// Where this server can be reached from its own machine: "any address" is nothing one can dial.
fn local_url(addr: SocketAddr, secure: bool) -> String {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let scheme = if secure { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, addr.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_any_address_can_be_dialled() {
        let any: SocketAddr = "0.0.0.0:3000".parse().unwrap();
        assert_eq!(local_url(any, false), "http://127.0.0.1:3000");
        let any: SocketAddr = "[::]:3000".parse().unwrap();
        assert_eq!(local_url(any, true), "https://[::1]:3000");
    }
}
