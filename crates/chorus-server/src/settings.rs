//! The settings of a server, starting it, and the handle by which it is stopped.

use crate::acme::acme_settings::AcmeSettings;
use crate::acme::{CertificateRenewal, CertificateResolver, DirectoryClient};
use crate::http::allowed_origins::CorsOrigin;
use crate::http::app_state::{AppState, RequestSettings};
use crate::http::certificate_status::CertificateStatus;
use crate::http::connection_limit::{AddressShare, ConnectionLimit};
use crate::http::tls::{self, TlsFileError};
use crate::http::trusted_network::TrustedNetwork;
use crate::http::{accept, request_metrics};
use crate::router;
use chorus_hub::{Hub, HubOptions};
use chorus_wire::limits;
use rustls::ServerConfig;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// Where the certificate of a listener comes from.
#[derive(Clone, Debug)]
pub enum TlsSource {
    /// Certificate chain and key, both PEM.
    Files { chain: PathBuf, key: PathBuf },
    /// An authority that issues and renews it (D-117).
    Acme(AcmeSettings),
}

/// Every setting of `chorus serve`; the binary fills it from flags, environment variables and a file.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Port 0 takes a free port.
    pub listen: SocketAddr,
    /// The URL under which clients reach the hub; the listen address without it.
    pub public_url: Option<String>,
    /// `server_name` in the discovery document.
    pub server_name: String,
    /// Requests per minute and key, or per address for requests without a key; 0 is off.
    pub rate_limit: u32,
    /// Registrations without a key per minute and address; 0 is off, and so is every budget when `rate_limit` is 0.
    pub register_rate: u32,
    /// Proxies whose forwarding headers are trusted (D-92).
    pub trusted_proxies: Vec<TrustedNetwork>,
    /// Origins of web pages that may use the hub, beside its own.
    pub cors_origins: Vec<CorsOrigin>,
    /// Max connections open at once, including streams.
    pub max_connections: usize,
    /// Max connections of one address. `None` is a share of `max_connections`, from which loopback is exempt: local tools and
    /// a proxy on the same machine all have its address.
    pub max_connections_per_address: Option<usize>,
    /// Where the listener's certificate comes from; plain HTTP without it.
    pub tls: Option<TlsSource>,
    pub hub: HubOptions,
}

impl ServerSettings {
    /// The defaults, on loopback and `data_dir`.
    pub fn with_data_dir(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3000)),
            public_url: None,
            server_name: "Chorus".into(),
            rate_limit: 600,
            register_rate: limits::REGISTER_RATE_DEFAULT,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            max_connections: limits::CONNECTIONS_DEFAULT,
            max_connections_per_address: None,
            tls: None,
            hub: HubOptions::for_data_dir(data_dir),
        }
    }

    /// The part of the settings that request handling depends on.
    pub(crate) fn request_settings(
        &self,
        listen: SocketAddr,
        public_url: String,
        certificate: Option<CertificateStatus>,
    ) -> RequestSettings {
        RequestSettings {
            public_url,
            listen,
            cors_origins: self.cors_origins.clone(),
            server_name: self.server_name.clone(),
            rate_limit: self.rate_limit,
            register_rate: self.register_rate,
            serves_tls: self.tls.is_some(),
            trusted_proxies: self.trusted_proxies.clone(),
            certificate,
            certified_names: self.certified_names(),
        }
    }

    /// The names in a certificate from an authority.
    fn certified_names(&self) -> Vec<String> {
        match &self.tls {
            Some(TlsSource::Acme(acme)) => acme
                .domains
                .iter()
                .map(|domain| domain.as_str().to_owned())
                .collect(),
            Some(TlsSource::Files { .. }) | None => Vec::new(),
        }
    }

    /// The URL by which clients reach a hub that has its certificate from an authority: only the names in it are trusted, and
    /// the authority has checked them on port 443.
    fn certified_url(&self) -> Option<String> {
        let name = self.certified_names().into_iter().next()?;
        Some(format!("https://{name}"))
    }
}

/// Why a server did not start; the binary prints it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Hub(#[from] chorus_hub::hub::StartError),
    #[error("cannot listen on {addr}: {cause}")]
    Listen { addr: SocketAddr, cause: String },
    #[error(transparent)]
    Tls(#[from] TlsFileError),
    #[error("no certificate can be ordered: {0}")]
    Acme(String),
}

/// Max time for closing the store, after the connections' own deadline.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Max time for writing answers after the webhooks that they waited for have ended.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A server that is listening. Dropping it cuts every connection; [`RunningServer::stop`] drains them first.
pub struct RunningServer {
    addr: SocketAddr,
    url: String,
    hub: Hub,
    shutdown: watch::Sender<bool>,
    accept_task: JoinHandle<()>,
    metrics_task: JoinHandle<()>,
    /// Keeps the certificate valid, if it comes from an authority.
    renewal_task: Option<JoinHandle<()>>,
}

impl RunningServer {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://127.0.0.1:3000`, or https with TLS; with a certificate from an authority, the name in it.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The hub that answers the requests.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Refuses new connections, ends open streams with a reconnect delay, finishes running requests and closes the store.
    /// Takes less than 5 s, or with webhooks in flight less than 15 s.
    pub async fn stop(mut self) {
        let webhook_deadline = Instant::now() + limits::SHUTDOWN_WEBHOOK_DEADLINE;
        self.shutdown.send_replace(true);
        self.hub.drain_streams();
        let mut is_drained = timeout(limits::SHUTDOWN_DEADLINE, &mut self.accept_task)
            .await
            .is_ok();
        // The receiver may have the message already: its answer must not get lost, even when its sender is gone.
        let settled = self.hub.delivery().wait_webhooks_settled();
        if timeout_at(webhook_deadline, settled).await.is_err() {
            tracing::warn!(
                "some webhooks did not end within the shutdown deadline and have failed"
            );
        }
        if !is_drained {
            // For the answers to their senders.
            is_drained = timeout(ANSWER_TIMEOUT, &mut self.accept_task).await.is_ok();
        }
        if !is_drained {
            tracing::warn!("some connections did not end within the shutdown deadline and are cut");
        }
        // Queued writes are committed first. The timeout lets the process end when the database does not answer.
        let closing = timeout(STORE_CLOSE_TIMEOUT, self.hub.close());
        let (closed, ()) = tokio::join!(closing, self.hub.flush_spans());
        if closed.is_err() {
            tracing::error!("the store did not close in time; unacknowledged writes may be lost");
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.accept_task.abort();
        self.metrics_task.abort();
        if let Some(task) = &self.renewal_task {
            task.abort();
        }
    }
}

/// Opens the hub and starts listening. Requests are answered once it returns.
pub async fn start_server(settings: ServerSettings) -> Result<RunningServer, StartError> {
    // TLS files and the listen address come before the store: the likeliest errors are reported first.
    let tls = settings.tls.as_ref().map(PreparedTls::load).transpose()?;
    let listen_error = |cause: std::io::Error| StartError::Listen {
        addr: settings.listen,
        cause: describe_listen_error(&cause),
    };
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(listen_error)?;
    let addr = listener.local_addr().map_err(listen_error)?;
    let url = settings
        .certified_url()
        .unwrap_or_else(|| local_url(addr, tls.is_some()));
    let public_url = settings
        .public_url
        .as_deref()
        .unwrap_or(&url)
        .trim_end_matches('/')
        .to_owned();
    // The hub puts the public URL into deliveries, long after the request that caused them.
    let hub = Hub::open(HubOptions {
        public_url: public_url.clone(),
        ..settings.hub.clone()
    })
    .await?;
    let (tls_config, certificate, renewal_task) = match tls {
        None => (None, None, None),
        Some(tls) => tls.start_renewal(&hub),
    };
    let state = AppState::new(
        hub.clone(),
        settings.request_settings(addr, public_url, certificate),
    );
    let (shutdown, shutdown_signal) = watch::channel(false);
    let connection_limit = ConnectionLimit::new(
        settings.max_connections,
        AddressShare::new(
            settings.max_connections,
            settings.max_connections_per_address,
            &settings.trusted_proxies,
        ),
        hub.clock().clone(),
    );
    let accept_task = tokio::spawn(accept::serve_connections(
        listener,
        tls_config,
        router::build_service(state),
        connection_limit,
        shutdown_signal,
    ));
    Ok(RunningServer {
        addr,
        url,
        hub,
        shutdown,
        accept_task,
        metrics_task: tokio::spawn(request_metrics::run_upkeep()),
        renewal_task,
    })
}

/// The listener's TLS before the hub is open: what can be wrong with it has been found.
enum PreparedTls {
    Files(Arc<ServerConfig>),
    Acme {
        settings: AcmeSettings,
        client: DirectoryClient,
    },
}

impl PreparedTls {
    fn load(source: &TlsSource) -> Result<Self, StartError> {
        Ok(match source {
            TlsSource::Files { chain, key } => Self::Files(tls::load_tls_config(chain, key)?),
            TlsSource::Acme(settings) => Self::Acme {
                settings: settings.clone(),
                client: DirectoryClient::new(settings).map_err(StartError::Acme)?,
            },
        })
    }

    /// The configuration, and for an authority also what is known of the certificate and the task that renews it. The data
    /// directory is the hub's own by now, so no other process orders with its account.
    fn start_renewal(
        self,
        hub: &Hub,
    ) -> (
        Option<Arc<ServerConfig>>,
        Option<CertificateStatus>,
        Option<JoinHandle<()>>,
    ) {
        match self {
            Self::Files(config) => (Some(config), None, None),
            Self::Acme { settings, client } => {
                let resolver = Arc::new(CertificateResolver::default());
                let status = CertificateStatus::default();
                let renewal = CertificateRenewal::new(
                    settings,
                    &hub.options().data_dir,
                    client,
                    resolver.clone(),
                    status.clone(),
                    hub.clock().clone(),
                );
                let task = tokio::spawn(renewal.run());
                let config = tls::build_acme_config(resolver);
                (Some(config), Some(status), Some(task))
            }
        }
    }
}

fn describe_listen_error(cause: &std::io::Error) -> String {
    if cause.kind() == std::io::ErrorKind::AddrInUse {
        "another program is using it; stop that one or choose another address with --listen".into()
    } else if cause.kind() == std::io::ErrorKind::PermissionDenied {
        format!(
            "{cause}; a port below 1024 needs a right: run setcap cap_net_bind_service=+ep on the program, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit"
        )
    } else {
        cause.to_string()
    }
}

/// The URL of this server on its own machine; an unspecified address becomes loopback, since a client cannot dial it.
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
