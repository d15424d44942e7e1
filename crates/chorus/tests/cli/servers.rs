//! A PostgreSQL and a NATS of a test's own, which it can stop and start again, and hubs that share them.

use crate::actors::{Hub, PATIENCE, signal};
use crate::front::Front;
use crate::postgres::{as_postgres, binaries, other_user};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Servers {
    pub folder: tempfile::TempDir,
    bin: PathBuf,
    postgres: Option<Child>,
    nats: Option<Child>,
    pub postgres_at: SocketAddr,
    pub nats_at: SocketAddr,
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn await_open(at: SocketAddr) {
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(at).is_err() {
        assert!(Instant::now() < until, "nobody listens on {at}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the program is there; under CI it must be.
fn there(what: &str, found: bool) -> bool {
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{what} is not installed, and CI needs it");
        eprintln!("skipped: {what} is not installed");
    }
    found
}

impl Servers {
    /// `None`, said aloud, where one of them is not installed.
    pub fn start() -> Option<Self> {
        let nats = Command::new("nats-server").arg("--version").stdout(Stdio::null()).status();
        let bin = binaries();
        if !there("NATS", nats.is_ok_and(|status| status.success())) || !there("PostgreSQL", bin.is_some()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("pg");
        std::fs::create_dir(&data).unwrap();
        if let Some((uid, gid)) = other_user() {
            std::os::unix::fs::chown(&data, Some(uid), Some(gid)).unwrap();
            // PostgreSQL's user has to get as far as its own directory.
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let bin = bin.unwrap();
        let mut initdb = as_postgres(&bin.join("initdb"));
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
        assert!(initdb.arg(&data).stdout(Stdio::null()).status().unwrap().success(), "initdb failed");
        let (postgres_at, nats_at) = (free(), free());
        let mut servers = Self { folder, bin, postgres: None, nats: None, postgres_at, nats_at };
        servers.postgres_up();
        servers.nats_up();
        Some(servers)
    }

    pub fn postgres_up(&mut self) {
        let mut server = as_postgres(&self.bin.join("postgres"));
        server.arg("-D").arg(self.folder.path().join("pg")).args([
            "-p",
            &self.postgres_at.port().to_string(),
            "-k",
            "",
        ]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"]);
        self.postgres = Some(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        self.await_postgres();
    }

    fn await_postgres(&self) {
        let (until, port) = (Instant::now() + PATIENCE, self.postgres_at.port().to_string());
        loop {
            let ready = Command::new(self.bin.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &port])
                .status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            assert!(Instant::now() < until, "PostgreSQL did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// At once, as in a crash; nothing that was committed is lost.
    pub fn postgres_down(&mut self) {
        let mut server = self.postgres.take().unwrap();
        signal(server.id(), "QUIT");
        server.wait().unwrap();
    }

    pub fn nats_up(&mut self) {
        let mut server = Command::new("nats-server");
        server.args(["-a", "127.0.0.1", "-p", &self.nats_at.port().to_string(), "-js", "-sd"]);
        server.arg(self.folder.path().join("nats"));
        self.nats = Some(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        await_open(self.nats_at);
    }

    pub fn nats_down(&mut self) {
        let mut server = self.nats.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// A hub that reaches them at these addresses.
    pub fn hub_by(&self, name: &str, listen: &str, postgres: SocketAddr, nats: SocketAddr) -> Hub {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (database, bus) = (format!("postgres://postgres@{postgres}/postgres"), format!("nats://{nats}"));
        let key = self.folder.path().join("seal.key");
        std::fs::write(&key, "5".repeat(64)).unwrap();
        let key = key.display().to_string();
        let options = ["--listen", listen, "--database", &database, "--bus", &bus, "--seal-key-file", &key];
        Hub::start(Path::new(&folder), &options)
    }

    pub fn hub(&self, name: &str, listen: &str) -> Hub {
        self.hub_by(name, listen, self.postgres_at, self.nats_at)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if self.nats.is_some() {
            self.nats_down();
        }
        if self.postgres.is_some() {
            self.postgres_down();
        }
    }
}

pub fn address(hub: &Hub) -> SocketAddr {
    hub.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// One address for all of them.
pub async fn before(hubs: &[Hub]) -> (Front, String) {
    let front = Front::before(hubs.iter().map(address).collect()).await;
    let url = format!("http://{}", front.addr);
    (front, url)
}
