//! A wire between the hub and its PostgreSQL that a story can hold still, or cut at the worst moment.

use crate::hub::Hub;
use chorus_server::Settings;
use chorus_wire::secret::Secret;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_postgres::config::Host;

pub struct Between {
    held: watch::Sender<bool>,
    cut: Arc<AtomicBool>,
    database: Arc<std::sync::OnceLock<String>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

impl Between {
    /// A hub that reaches its database through such a wire; `None` where there is no PostgreSQL.
    pub async fn hub(with: impl FnOnce(&mut Settings)) -> Option<(Hub, Self)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (held, watching) = watch::channel(false);
        let (cut, database) = (
            Arc::<AtomicBool>::default(),
            Arc::<std::sync::OnceLock<String>>::default(),
        );
        let (cutting, beyond) = (cut.clone(), database.clone());
        let task = tokio::spawn(async move {
            while let Ok((hub, _)) = listener.accept().await {
                let server = connect(beyond.get().expect("a database")).await;
                tokio::spawn(carry(hub, server, watching.clone(), cutting.clone()));
            }
        });
        let between = Self {
            held,
            cut,
            database,
            task,
        };
        let hub = Hub::postgres(|settings| {
            let url = settings.hub.database.take().unwrap().expose().to_owned();
            let (_, name) = url.rsplit_once('/').unwrap();
            settings.hub.database = Some(Secret::new(format!(
                "postgres://postgres@127.0.0.1:{port}/{name}"
            )));
            between.database.set(url).unwrap();
            with(settings);
        });
        Some((hub.await?, between))
    }

    /// The database's own address, past the wire.
    pub fn database(&self) -> &str {
        self.database.get().expect("a database")
    }

    /// From now on nothing passes, and nothing is closed: as when a network goes away.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    pub fn let_go(&self) {
        self.held.send_replace(false);
    }

    /// The next commit reaches the database, and its answer reaches nobody.
    pub fn cut_after_commit(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }
}

async fn connect(url: &str) -> Box<dyn Wire> {
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

/// Until either side is gone.
async fn carry(
    mut hub: TcpStream,
    mut server: Box<dyn Wire>,
    mut held: watch::Receiver<bool>,
    cut: Arc<AtomicBool>,
) {
    let (mut asked, mut said) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = hub.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let _ = held.wait_for(|held| !held).await;
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
                let commits = asked[..length].windows(7).any(|window| window == b"commit\0");
                if commits && cut.swap(false, Ordering::SeqCst) {
                    // It has answered, so it is done.
                    let _ = server.read(&mut said).await;
                    return;
                }
            }
            read = server.read(&mut said) => {
                let Ok(length @ 1..) = read else { return };
                let _ = held.wait_for(|held| !held).await;
                if hub.write_all(&said[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
