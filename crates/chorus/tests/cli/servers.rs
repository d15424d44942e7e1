//! A PostgreSQL and a NATS of a test's own, which it can stop and start again, and hubs that share them: on loopback, or on
//! nodes of a network that can be cut.

use crate::actors::{Hub, PATIENCE, signal};
use crate::front::Front;
use crate::network::{Net, Network, Node, Wire};
use crate::postgres::{as_postgres, binaries, other_user};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Whether something is there; under CI it must be.
pub fn there(what: &str, found: bool) -> bool {
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "{what} is not there, and CI needs it"
        );
        eprintln!("skipped: {what} is not there");
    }
    found
}

/// Waits for something that another process does.
#[track_caller]
pub fn await_so(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// The command on its node, or here.
fn on(node: Option<&Node>, command: Command, user: Option<(u32, u32)>) -> Command {
    match node {
        Some(node) => node.run(&command, user),
        None => command,
    }
}

struct Postgres {
    bin: PathBuf,
    data: PathBuf,
    node: Option<Node>,
    at: SocketAddr,
    server: Option<Child>,
}

impl Postgres {
    fn new(folder: &Path, bin: PathBuf, node: Option<Node>, at: SocketAddr) -> Self {
        let data = folder.join("pg");
        std::fs::create_dir(&data).unwrap();
        if let Some((uid, gid)) = other_user() {
            std::os::unix::fs::chown(&data, Some(uid), Some(gid)).unwrap();
            // PostgreSQL's user has to get as far as its own directory.
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut initdb = as_postgres(&bin.join("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "-D",
        ]);
        assert!(
            initdb
                .arg(&data)
                .stdout(Stdio::null())
                .status()
                .unwrap()
                .success(),
            "initdb failed"
        );
        // Whoever reaches it may use it: that is the test, on loopback or on a net of its own.
        let rules = std::fs::OpenOptions::new()
            .append(true)
            .open(data.join("pg_hba.conf"));
        std::io::Write::write_all(&mut rules.unwrap(), b"host all all 198.19.0.0/16 trust\n")
            .unwrap();
        let mut postgres = Self {
            bin,
            data,
            node,
            at,
            server: None,
        };
        postgres.start();
        postgres
    }

    fn start(&mut self) {
        let program = self.bin.join("postgres");
        let (mut server, user) = match &self.node {
            Some(_) => (Command::new(program), other_user()),
            None => (as_postgres(&program), None),
        };
        server.current_dir("/").arg("-D").arg(&self.data).args([
            "-p",
            &self.at.port().to_string(),
            "-k",
            "",
        ]);
        server.args(["-c", &format!("listen_addresses={}", self.at.ip())]);
        server.args(["-c", "fsync=off", "-c", "max_connections=200"]);
        let mut server = on(self.node.as_ref(), server, user);
        self.server = Some(
            server
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        await_so("PostgreSQL starts", || {
            let mut ready = Command::new(self.bin.join("pg_isready"));
            ready.args([
                "-q",
                "-U",
                "postgres",
                "-h",
                &self.at.ip().to_string(),
                "-p",
                &self.at.port().to_string(),
            ]);
            on(self.node.as_ref(), ready, None)
                .status()
                .is_ok_and(|status| status.success())
        });
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            signal(server.id(), "QUIT");
            server.wait().unwrap();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

pub struct Nats {
    folder: PathBuf,
    node: Option<Node>,
    at: SocketAddr,
    server: Option<Child>,
}

impl Nats {
    /// `routes`: where it listens for another server, and where that one does.
    fn new(
        folder: PathBuf,
        node: Option<Node>,
        at: SocketAddr,
        routes: Option<[SocketAddr; 2]>,
    ) -> Self {
        std::fs::create_dir(&folder).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let store = folder.display();
        let mut config = format!(
            "server_name: {name}\nlisten: \"{at}\"\njetstream {{ store_dir: \"{store}\" }}\n"
        );
        if let Some([own, other]) = routes {
            // Not advertised: each hub stays at its own server.
            let cluster = format!(
                "name: bus, listen: \"{own}\", no_advertise: true, routes: [\"nats://{other}\"]"
            );
            config += &format!("cluster {{ {cluster} }}\n");
        }
        std::fs::write(folder.join("nats.conf"), config).unwrap();
        let mut nats = Self {
            folder,
            node,
            at,
            server: None,
        };
        nats.start();
        nats
    }

    fn start(&mut self) {
        let log = std::fs::File::create(self.folder.join("log")).unwrap();
        let mut server = Command::new("nats-server");
        server
            .arg("-c")
            .arg(self.folder.join("nats.conf"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        let mut server = on(self.node.as_ref(), server, None);
        self.server = Some(server.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        await_so("NATS starts", || self.said("Server is ready"));
    }

    /// Whether its log says this.
    fn said(&self, what: &str) -> bool {
        std::fs::read_to_string(self.folder.join("log"))
            .unwrap_or_default()
            .contains(what)
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The programs that all of this needs; `None`, said aloud, where one is not installed.
fn programs() -> Option<PathBuf> {
    let nats = Command::new("nats-server")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let bin = binaries();
    let both = there("NATS", nats.is_ok_and(|status| status.success()))
        && there("PostgreSQL", bin.is_some());
    bin.filter(|_| both)
}

pub struct Servers {
    postgres: Postgres,
    pub nats: Nats,
    pub folder: tempfile::TempDir,
    pub postgres_at: SocketAddr,
    pub nats_at: SocketAddr,
}

impl Servers {
    /// On loopback.
    pub fn start() -> Option<Self> {
        let (bin, folder) = (programs()?, tempfile::tempdir().unwrap());
        let postgres = Postgres::new(folder.path(), bin, None, free());
        let nats = Nats::new(folder.path().join("nats"), None, free(), None);
        Some(Self::of(postgres, nats, folder))
    }

    /// Each on a node of its own.
    pub fn start_on(network: &Network) -> Option<Self> {
        let (bin, folder) = (programs()?, tempfile::tempdir().unwrap());
        let postgres = Self::postgres_on(network, folder.path(), bin);
        let node = network.node("bus");
        let at = SocketAddr::new(network.wire(&node, Net::Bus).address.into(), 4222);
        let nats = Nats::new(folder.path().join("nats"), Some(node), at, None);
        Some(Self::of(postgres, nats, folder))
    }

    /// The same with two bus servers that are one bus, for as long as the wire between them is whole.
    pub fn start_two_on(network: &Network) -> Option<(Self, Nats, Wire)> {
        let (bin, folder) = (programs()?, tempfile::tempdir().unwrap());
        let postgres = Self::postgres_on(network, folder.path(), bin);
        let nodes = [network.node("bus"), network.node("bus2")];
        let [route, between] = nodes.each_ref().map(|node| network.wire(node, Net::Routes));
        let routes = [&route, &between].map(|wire| SocketAddr::new(wire.address.into(), 6222));
        let [one, other] = nodes
            .each_ref()
            .map(|node| SocketAddr::new(network.wire(node, Net::Bus).address.into(), 4222));
        let [first, second] = nodes;
        let nats = Nats::new(folder.path().join("nats"), Some(first), one, Some(routes));
        let [here, there] = routes;
        let second = Nats::new(
            folder.path().join("nats2"),
            Some(second),
            other,
            Some([there, here]),
        );
        await_so("the bus servers are one", || {
            nats.said("metadata leader") && second.said("metadata leader")
        });
        Some((Self::of(postgres, nats, folder), second, between))
    }

    fn of(postgres: Postgres, nats: Nats, folder: tempfile::TempDir) -> Self {
        let (postgres_at, nats_at) = (postgres.at, nats.at);
        Self {
            postgres,
            nats,
            folder,
            postgres_at,
            nats_at,
        }
    }

    fn postgres_on(network: &Network, folder: &Path, bin: PathBuf) -> Postgres {
        let node = network.node("database");
        let at = SocketAddr::new(network.wire(&node, Net::Database).address.into(), 5432);
        Postgres::new(folder, bin, Some(node), at)
    }

    pub fn postgres_up(&mut self) {
        self.postgres.start();
    }

    /// At once, as in a crash; nothing that was committed is lost.
    pub fn postgres_down(&mut self) {
        self.postgres.stop();
    }

    pub fn nats_up(&mut self) {
        self.nats.start();
    }

    pub fn nats_down(&mut self) {
        self.nats.stop();
    }

    /// The command for a hub that shares them, by this bus server.
    pub fn hub_command(&self, name: &str, listen: &str, nats: &Nats) -> Command {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let (database, bus) = (
            format!(
                "postgres://postgres@{}/postgres?sslmode=disable",
                self.postgres_at
            ),
            format!("nats://{}", nats.at),
        );
        let key = self.folder.path().join("seal.key");
        std::fs::write(&key, "5".repeat(64)).unwrap();
        let key = key.display().to_string();
        Hub::command(
            &folder,
            &[
                "--listen",
                listen,
                "--database",
                &database,
                "--bus",
                &bus,
                "--seal-key-file",
                &key,
            ],
        )
    }

    pub fn hub(&self, name: &str, listen: &str) -> Hub {
        Hub::begin(self.hub_command(name, listen, &self.nats))
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
