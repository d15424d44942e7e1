//! A test network of namespaces connected by links that can be cut. As between machines, a cut link closes no connection.

use crate::servers::is_available;
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The prefix of the test namespaces; the id of the creating process follows.
const NAMESPACE_PREFIX: &str = "chorus-test-";
const NAMESPACE_DIR: &str = "/run/netns";

/// The purpose of a wire. Each is a separate network, so that a hub can lose one connection and keep another.
#[derive(Clone, Copy)]
pub enum Net {
    /// The test process is connected to it.
    Clients,
    Database,
    Bus,
    /// Between bus servers.
    Routes,
}

impl Net {
    const ALL: [Self; 4] = [Self::Clients, Self::Database, Self::Bus, Self::Routes];

    fn bridge(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Database => "database",
            Self::Bus => "bus",
            Self::Routes => "routes",
        }
    }
}

/// A switch in its own namespace, without the firewall rules of the machine, with nodes around it.
pub struct Network {
    switch: String,
    /// The address block of the clients' network, which must be unused on this machine. The other networks are invisible
    /// to it.
    block: u8,
    ports: Cell<u8>,
}

/// A machine: a network namespace.
#[derive(Clone)]
pub struct Node(String);

/// A link from a node to the switch.
pub struct Wire {
    switch: String,
    port: String,
    net: Net,
    pub address: Ipv4Addr,
}

fn ip_succeeds(args: &[&str]) -> bool {
    let done = Command::new("ip")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

#[track_caller]
fn run_ip(args: &[&str]) {
    let done = Command::new("ip").args(args).output().unwrap();
    assert!(
        done.status.success(),
        "ip {args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn ip_output(args: &[&str]) -> String {
    Command::new("ip")
        .args(args)
        .output()
        .map(|done| String::from_utf8_lossy(&done.stdout).into_owned())
        .unwrap_or_default()
}

/// Kills the processes in a namespace, then removes the namespace with its links.
fn remove_namespace(space: &str) {
    for pid in ip_output(&["netns", "pids", space]).split_whitespace() {
        let _ = Command::new("kill")
            .args(["-KILL", pid])
            .stderr(Stdio::null())
            .status();
    }
    ip_succeeds(&["netns", "del", space]);
}

fn list_namespaces() -> Vec<String> {
    let names = std::fs::read_dir(NAMESPACE_DIR)
        .into_iter()
        .flatten()
        .flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(NAMESPACE_PREFIX))
        .collect()
}

/// Removes the namespaces of test processes that were killed.
fn remove_stale_namespaces() {
    for space in list_namespaces() {
        let creator = space[NAMESPACE_PREFIX.len()..]
            .split('-')
            .next()
            .unwrap_or_default();
        if !Path::new("/proc").join(creator).exists() {
            remove_namespace(&space);
        }
    }
}

impl Network {
    /// `None` with a message if namespaces cannot be created.
    pub fn create() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let tools = ip_succeeds(&["-V"])
            && Command::new("nsenter")
                .arg("-V")
                .stdout(Stdio::null())
                .status()
                .is_ok();
        if !is_available("iproute2", tools) {
            return None;
        }
        remove_stale_namespaces();
        let process = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let switch = format!("{NAMESPACE_PREFIX}{process}-{number}");
        if !is_available(
            "the right to make network namespaces",
            ip_succeeds(&["netns", "add", &switch]),
        ) {
            return None;
        }
        let network = Self {
            switch,
            block: free_block(process as usize + number),
            ports: Cell::new(1),
        };
        for net in Net::ALL {
            let bridge = net.bridge();
            run_ip(&[
                "-n",
                &network.switch,
                "link",
                "add",
                "name",
                bridge,
                "type",
                "bridge",
            ]);
            run_ip(&["-n", &network.switch, "link", "set", "dev", bridge, "up"]);
        }
        let outside = format!("ch{process}n{number}");
        let (port, own) = network.create_port(Net::Clients, &outside, &process.to_string());
        run_ip(&["addr", "add", &format!("{own}/24"), "dev", &outside]);
        run_ip(&["link", "set", "dev", &outside, "up"]);
        run_ip(&["-n", &network.switch, "link", "set", "dev", &port, "up"]);
        Some(network)
    }

    /// Creates a link; returns its port at the switch and the address for its other end.
    fn create_port(&self, net: Net, other_end: &str, space: &str) -> (String, Ipv4Addr) {
        let number = self.ports.replace(self.ports.get() + 1);
        let port = format!("port{number}");
        let switch = &self.switch;
        run_ip(&[
            "-n", switch, "link", "add", "name", &port, "type", "veth", "peer", "name", other_end,
            "netns", space,
        ]);
        run_ip(&[
            "-n",
            switch,
            "link",
            "set",
            "dev",
            &port,
            "master",
            net.bridge(),
        ]);
        // RFC 2544: addresses for network tests.
        let address = match net {
            Net::Clients => Ipv4Addr::new(198, 18, self.block, number),
            Net::Database => Ipv4Addr::new(198, 19, 1, number),
            Net::Bus => Ipv4Addr::new(198, 19, 2, number),
            Net::Routes => Ipv4Addr::new(198, 19, 3, number),
        };
        (port, address)
    }

    pub fn node(&self, name: &str) -> Node {
        let space = format!("{}-{name}", self.switch);
        run_ip(&["netns", "add", &space]);
        run_ip(&["-n", &space, "link", "set", "dev", "lo", "up"]);
        Node(space)
    }

    pub fn wire(&self, node: &Node, net: Net) -> Wire {
        let end = net.bridge();
        let (port, address) = self.create_port(net, end, &node.0);
        run_ip(&[
            "-n",
            &node.0,
            "addr",
            "add",
            &format!("{address}/24"),
            "dev",
            end,
        ]);
        run_ip(&["-n", &node.0, "link", "set", "dev", end, "up"]);
        let wire = Wire {
            switch: self.switch.clone(),
            port,
            net,
            address,
        };
        wire.restore();
        wire
    }
}

/// An address block that no interface of this machine uses.
fn free_block(first: usize) -> u8 {
    let used = ip_output(&["-4", "-o", "addr"]);
    let mut blocks = (0..256).map(|more| ((first + more) % 256) as u8);
    blocks
        .find(|block| !used.contains(&format!(" 198.18.{block}.")))
        .expect("a free block of addresses")
}

impl Drop for Network {
    fn drop(&mut self) {
        let mine = format!("{}-", self.switch);
        list_namespaces()
            .iter()
            .filter(|space| space.starts_with(&mine))
            .for_each(|space| remove_namespace(space));
        remove_namespace(&self.switch);
    }
}

impl Node {
    /// The same command on this node; as another user for a server that refuses to run as root.
    pub fn run(&self, command: &Command, user: Option<(u32, u32)>) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net={NAMESPACE_DIR}/{}", self.0));
        if let Some((uid, gid)) = user {
            inside.args([format!("--setuid={uid}"), format!("--setgid={gid}")]);
        }
        inside
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
        // An empty environment, as for every hub of the tests.
        inside.env_clear();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }
}

impl Wire {
    /// Cuts the link: the node sees that it is down, the others only that no packets come.
    pub fn cut(&self) {
        run_ip(&["-n", &self.switch, "link", "set", "dev", &self.port, "down"]);
    }

    /// Drops all packets at the switch; neither end notices.
    pub fn drop_packets(&self) {
        run_ip(&[
            "-n",
            &self.switch,
            "link",
            "set",
            "dev",
            &self.port,
            "nomaster",
        ]);
    }

    pub fn restore(&self) {
        run_ip(&[
            "-n",
            &self.switch,
            "link",
            "set",
            "dev",
            &self.port,
            "master",
            self.net.bridge(),
        ]);
        run_ip(&["-n", &self.switch, "link", "set", "dev", &self.port, "up"]);
    }
}
