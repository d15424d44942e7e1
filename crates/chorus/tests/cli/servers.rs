//! A private PostgreSQL and NATS that a test can stop and start, and hubs that share them: on loopback, or on nodes of a test
//! network.

use crate::actors::{Hub, TIMEOUT, send_signal};
use crate::front::Front;
use crate::network::{Net, Network, Node, Wire};
use crate::postgres::{as_postgres, binaries, other_user};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Whether a program is installed; prints a message if not, and fails under CI.
pub fn is_available(name: &str, found: bool) -> bool {
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "{name} is not there, and CI needs it"
        );
        eprintln!("skipped: {name} is not there");
    }
    found
}

/// Waits until `condition` is true.
#[track_caller]
pub fn await_condition(description: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {description}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// The command on its node, or on this machine without one.
fn on_node(node: Option<&Node>, command: Command, user: Option<(u32, u32)>) -> Command {
    match node {
        Some(node) => node.run(&command, user),
        None => command,
    }
}

struct Postgres {
    bin: PathBuf,
    data: PathBuf,
    node: Option<Node>,
    address: SocketAddr,
    server: Option<Child>,
}

impl Postgres {
    fn new(folder: &Path, bin: PathBuf, node: Option<Node>, address: SocketAddr) -> Self {
        let data = folder.join("pg");
        std::fs::create_dir(&data).unwrap();
        if let Some((uid, gid)) = other_user() {
            std::os::unix::fs::chown(&data, Some(uid), Some(gid)).unwrap();
            // The user of PostgreSQL must be able to enter its data directory.
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
        // No authentication: only the test can reach it, on loopback or in its own network.
        let rules = std::fs::OpenOptions::new()
            .append(true)
            .open(data.join("pg_hba.conf"));
        std::io::Write::write_all(&mut rules.unwrap(), b"host all all 198.19.0.0/16 trust\n")
            .unwrap();
        let mut postgres = Self {
            bin,
            data,
            node,
            address,
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
            &self.address.port().to_string(),
            "-k",
            "",
        ]);
        server.args(["-c", &format!("listen_addresses={}", self.address.ip())]);
        server.args(["-c", "fsync=off", "-c", "max_connections=200"]);
        let mut server = on_node(self.node.as_ref(), server, user);
        self.server = Some(
            server
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        await_condition("PostgreSQL starts", || {
            let mut ready = Command::new(self.bin.join("pg_isready"));
            ready.args([
                "-q",
                "-U",
                "postgres",
                "-h",
                &self.address.ip().to_string(),
                "-p",
                &self.address.port().to_string(),
            ]);
            on_node(self.node.as_ref(), ready, None)
                .status()
                .is_ok_and(|status| status.success())
        });
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            send_signal(server.id(), "QUIT");
            server.wait().unwrap();
        }
    }
}

impl Postgres {
    /// `psql` as its administrator, on the same machine.
    fn psql_command(&self) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        let (host, port) = (
            self.address.ip().to_string(),
            self.address.port().to_string(),
        );
        psql.args(["-h", &host, "-p", &port, "-U", "postgres", "postgres"]);
        on_node(self.node.as_ref(), psql, None)
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
    address: SocketAddr,
    server: Option<Child>,
}

impl Nats {
    /// `routes`: the cluster addresses of this server and of the other one.
    fn new(
        folder: PathBuf,
        node: Option<Node>,
        address: SocketAddr,
        routes: Option<[SocketAddr; 2]>,
    ) -> Self {
        std::fs::create_dir(&folder).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let store = folder.display();
        let mut config = format!(
            "server_name: {name}\nlisten: \"{address}\"\njetstream {{ store_dir: \"{store}\" }}\n"
        );
        if let Some([own, other]) = routes {
            // Not advertised, so that each hub stays connected to its own server.
            let cluster = format!(
                "name: bus, listen: \"{own}\", no_advertise: true, routes: [\"nats://{other}\"]"
            );
            config += &format!("cluster {{ {cluster} }}\n");
        }
        std::fs::write(folder.join("nats.conf"), config).unwrap();
        let mut nats = Self {
            folder,
            node,
            address,
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
        let mut server = on_node(self.node.as_ref(), server, None);
        self.server = Some(server.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        await_condition("NATS starts", || self.log_contains("Server is ready"));
    }

    /// Whether its log contains this text.
    fn log_contains(&self, text: &str) -> bool {
        std::fs::read_to_string(self.folder.join("log"))
            .unwrap_or_default()
            .contains(text)
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

/// The folder of PostgreSQL's programs; `None` with a message if it or NATS is not installed.
fn find_programs() -> Option<PathBuf> {
    let nats = Command::new("nats-server")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let bin = binaries();
    let all_found = is_available("NATS", nats.is_ok_and(|status| status.success()))
        && is_available("PostgreSQL", bin.is_some());
    bin.filter(|_| all_found)
}

pub struct Servers {
    postgres: Postgres,
    pub nats: Nats,
    pub folder: tempfile::TempDir,
    pub postgres_address: SocketAddr,
    pub nats_address: SocketAddr,
}

impl Servers {
    /// Starts both on loopback.
    pub fn start() -> Option<Self> {
        let bin = find_programs()?;
        let folder = tempfile::tempdir().unwrap();
        let postgres = Postgres::new(folder.path(), bin, None, free_address());
        let nats = Nats::new(folder.path().join("nats"), None, free_address(), None);
        Some(Self::from_parts(postgres, nats, folder))
    }

    /// Starts each on its own node.
    pub fn start_on(network: &Network) -> Option<Self> {
        let bin = find_programs()?;
        let folder = tempfile::tempdir().unwrap();
        let postgres = Self::start_postgres_on(network, folder.path(), bin);
        let node = network.node("bus");
        let address = SocketAddr::new(network.wire(&node, Net::Bus).address.into(), 4222);
        let nats = Nats::new(folder.path().join("nats"), Some(node), address, None);
        Some(Self::from_parts(postgres, nats, folder))
    }

    /// Starts PostgreSQL and a cluster of two NATS servers; also returns the wire between them.
    pub fn start_two_on(network: &Network) -> Option<(Self, Nats, Wire)> {
        let bin = find_programs()?;
        let folder = tempfile::tempdir().unwrap();
        let postgres = Self::start_postgres_on(network, folder.path(), bin);
        let nodes = [network.node("bus"), network.node("bus2")];
        let [route, between] = nodes.each_ref().map(|node| network.wire(node, Net::Routes));
        let routes = [&route, &between].map(|wire| SocketAddr::new(wire.address.into(), 6222));
        let [first_address, second_address] = nodes
            .each_ref()
            .map(|node| SocketAddr::new(network.wire(node, Net::Bus).address.into(), 4222));
        let [first, second] = nodes;
        let nats = Nats::new(
            folder.path().join("nats"),
            Some(first),
            first_address,
            Some(routes),
        );
        let [first_route, second_route] = routes;
        let second = Nats::new(
            folder.path().join("nats2"),
            Some(second),
            second_address,
            Some([second_route, first_route]),
        );
        await_condition("the bus servers form a cluster", || {
            nats.log_contains("metadata leader") && second.log_contains("metadata leader")
        });
        Some((Self::from_parts(postgres, nats, folder), second, between))
    }

    fn from_parts(postgres: Postgres, nats: Nats, folder: tempfile::TempDir) -> Self {
        let postgres_address = postgres.address;
        let nats_address = nats.address;
        Self {
            postgres,
            nats,
            folder,
            postgres_address,
            nats_address,
        }
    }

    fn start_postgres_on(network: &Network, folder: &Path, bin: PathBuf) -> Postgres {
        let node = network.node("database");
        let address = SocketAddr::new(network.wire(&node, Net::Database).address.into(), 5432);
        Postgres::new(folder, bin, Some(node), address)
    }

    pub fn psql_command(&self) -> Command {
        self.postgres.psql_command()
    }

    pub fn start_postgres(&mut self) {
        self.postgres.start();
    }

    /// Stops it at once, as in a crash; committed data is kept.
    pub fn stop_postgres(&mut self) {
        self.postgres.stop();
    }

    pub fn start_nats(&mut self) {
        self.nats.start();
    }

    pub fn stop_nats(&mut self) {
        self.nats.stop();
    }

    /// The command for a hub that uses these servers, with this NATS server.
    pub fn hub_command(&self, name: &str, listen: &str, nats: &Nats) -> Command {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let database = format!(
            "postgres://postgres@{}/postgres?sslmode=disable",
            self.postgres_address
        );
        let bus = format!("nats://{}", nats.address);
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
        Hub::start_command(self.hub_command(name, listen, &self.nats))
    }
}

pub fn hub_address(hub: &Hub) -> SocketAddr {
    hub.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Starts a load balancer in front of the hubs.
pub async fn start_front(hubs: &[Hub]) -> (Front, String) {
    let front = Front::before(hubs.iter().map(hub_address).collect()).await;
    let url = format!("http://{}", front.addr);
    (front, url)
}
