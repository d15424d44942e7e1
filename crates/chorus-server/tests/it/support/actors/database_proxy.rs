//! A TCP proxy between a hub and its PostgreSQL that a story can pause, or cut after a commit.

use crate::support::hub::Hub;
use chorus_server::ServerSettings;
use chorus_wire::secret::Secret;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_postgres::config::Host;

pub struct DatabaseProxy {
    paused: watch::Sender<bool>,
    cut: Arc<AtomicBool>,
    database: Arc<std::sync::OnceLock<String>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for DatabaseProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

trait DatabaseStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> DatabaseStream for T {}

impl DatabaseProxy {
    /// A hub that reaches its database through the proxy; `None` without PostgreSQL.
    pub async fn start_hub(with: impl FnOnce(&mut ServerSettings)) -> Option<(Hub, Self)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (paused, watching) = watch::channel(false);
        let (cut, database) = (
            Arc::<AtomicBool>::default(),
            Arc::<std::sync::OnceLock<String>>::default(),
        );
        let (cutting, beyond) = (cut.clone(), database.clone());
        let task = tokio::spawn(async move {
            while let Ok((hub, _)) = listener.accept().await {
                let server = connect(beyond.get().expect("a database")).await;
                tokio::spawn(forward(hub, server, watching.clone(), cutting.clone()));
            }
        });
        let proxy = Self {
            paused,
            cut,
            database,
            task,
        };
        let hub = Hub::postgres(|settings| {
            let url = settings
                .hub
                .database_url
                .take()
                .unwrap()
                .expose()
                .to_owned();
            let (_, name) = url.rsplit_once('/').unwrap();
            settings.hub.database_url = Some(Secret::new(format!(
                "postgres://postgres@127.0.0.1:{port}/{name}"
            )));
            proxy.database.set(url).unwrap();
            with(settings);
        });
        Some((hub.await?, proxy))
    }

    /// The database's own address, without the proxy.
    pub fn database(&self) -> &str {
        self.database.get().expect("a database")
    }

    /// From now on no byte passes and no connection is closed, as when a network is lost.
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    pub fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// The next commit reaches the database, and its answer does not reach the hub.
    pub fn cut_after_commit(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

async fn connect(url: &str) -> Box<dyn DatabaseStream> {
    let config: tokio_postgres::Config = url.parse().unwrap();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match &config.get_hosts()[0] {
        Host::Tcp(host) => Box::new(TcpStream::connect((host.as_str(), port)).await.unwrap()),
        Host::Unix(folder) => Box::new(
            UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")))
                .await
                .unwrap(),
        ),
    }
}

/// Forwards until either side closes.
async fn forward(
    mut hub: TcpStream,
    mut server: Box<dyn DatabaseStream>,
    mut paused: watch::Receiver<bool>,
    cut: Arc<AtomicBool>,
) {
    let (mut request, mut response) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = hub.read(&mut request) => {
                let Ok(length @ 1..) = read else { return };
                let _ = paused.wait_for(|paused| !paused).await;
                if server.write_all(&request[..length]).await.is_err() {
                    return;
                }
                let commits = request[..length].windows(7).any(|window| window == b"commit\0");
                if commits && cut.swap(false, Ordering::SeqCst) {
                    // The database has answered, so the commit is done.
                    let _ = server.read(&mut response).await;
                    return;
                }
            }
            read = server.read(&mut response) => {
                let Ok(length @ 1..) = read else { return };
                let _ = paused.wait_for(|paused| !paused).await;
                if hub.write_all(&response[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
