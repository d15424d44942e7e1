//! A network of a test's own: namespaces on wires that can be cut, so that a split is what it is between machines, where
//! nobody is told that a connection is over.

use crate::servers::there;
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the names of all our namespaces begin with; the process that made one comes next.
const OURS: &str = "chorus-test-";
const SPACES: &str = "/run/netns";

/// What a wire is for. Each is a net of its own, so that a hub can lose one thing and keep another.
#[derive(Clone, Copy)]
pub enum Net {
    /// The test itself is on it.
    Clients,
    Database,
    Bus,
    /// From bus server to bus server.
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

/// A switch in a namespace of its own, where no rules of the machine apply, and nodes around it.
pub struct Network {
    switch: String,
    /// Of the net that the test is on, which must be nobody else's on this machine; the others nobody sees.
    block: u8,
    ports: Cell<u8>,
}

/// A machine, as far as the network goes.
#[derive(Clone)]
pub struct Node(String);

/// From a node to the switch.
pub struct Wire {
    switch: String,
    port: String,
    net: Net,
    pub address: Ipv4Addr,
}

fn ip(words: &[&str]) -> bool {
    let done = Command::new("ip")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

#[track_caller]
fn must(words: &[&str]) {
    let done = Command::new("ip").args(words).output().unwrap();
    assert!(
        done.status.success(),
        "ip {words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn said(words: &[&str]) -> String {
    Command::new("ip")
        .args(words)
        .output()
        .map(|done| String::from_utf8_lossy(&done.stdout).into_owned())
        .unwrap_or_default()
}

/// Ends what runs in a namespace, and then the namespace with its wires.
fn remove(space: &str) {
    for pid in said(&["netns", "pids", space]).split_whitespace() {
        let _ = Command::new("kill")
            .args(["-KILL", pid])
            .stderr(Stdio::null())
            .status();
    }
    ip(&["netns", "del", space]);
}

fn spaces() -> Vec<String> {
    let names = std::fs::read_dir(SPACES).into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(OURS))
        .collect()
}

/// A test that was killed could not remove its own.
fn sweep() {
    for space in spaces() {
        let maker = space[OURS.len()..].split('-').next().unwrap_or_default();
        if !Path::new("/proc").join(maker).exists() {
            remove(&space);
        }
    }
}

impl Network {
    /// `None`, said aloud, where namespaces cannot be made.
    pub fn make() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let tools = ip(&["-V"])
            && Command::new("nsenter")
                .arg("-V")
                .stdout(Stdio::null())
                .status()
                .is_ok();
        if !there("iproute2", tools) {
            return None;
        }
        sweep();
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let switch = format!("{OURS}{process}-{number}");
        if !there(
            "the right to make network namespaces",
            ip(&["netns", "add", &switch]),
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
            must(&[
                "-n",
                &network.switch,
                "link",
                "add",
                "name",
                bridge,
                "type",
                "bridge",
            ]);
            must(&["-n", &network.switch, "link", "set", "dev", bridge, "up"]);
        }
        let outside = format!("ch{process}n{number}");
        let (port, own) = network.port(Net::Clients, &outside, &process.to_string());
        must(&["addr", "add", &format!("{own}/24"), "dev", &outside]);
        must(&["link", "set", "dev", &outside, "up"]);
        must(&["-n", &network.switch, "link", "set", "dev", &port, "up"]);
        Some(network)
    }

    /// A wire's end at the switch, and the address for its other end.
    fn port(&self, net: Net, other_end: &str, space: &str) -> (String, Ipv4Addr) {
        let number = self.ports.replace(self.ports.get() + 1);
        let (port, switch) = (format!("port{number}"), &self.switch);
        must(&[
            "-n", switch, "link", "add", "name", &port, "type", "veth", "peer", "name", other_end,
            "netns", space,
        ]);
        must(&[
            "-n",
            switch,
            "link",
            "set",
            "dev",
            &port,
            "master",
            net.bridge(),
        ]);
        // RFC 2544: addresses of networks that are under test.
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
        must(&["netns", "add", &space]);
        must(&["-n", &space, "link", "set", "dev", "lo", "up"]);
        Node(space)
    }

    pub fn wire(&self, node: &Node, net: Net) -> Wire {
        let end = net.bridge();
        let (port, address) = self.port(net, end, &node.0);
        must(&[
            "-n",
            &node.0,
            "addr",
            "add",
            &format!("{address}/24"),
            "dev",
            end,
        ]);
        must(&["-n", &node.0, "link", "set", "dev", end, "up"]);
        let wire = Wire {
            switch: self.switch.clone(),
            port,
            net,
            address,
        };
        wire.mend();
        wire
    }
}

/// One that no interface of this machine is in.
fn free_block(first: usize) -> u8 {
    let taken = said(&["-4", "-o", "addr"]);
    let mut blocks = (0..256).map(|more| ((first + more) % 256) as u8);
    blocks
        .find(|block| !taken.contains(&format!(" 198.18.{block}.")))
        .expect("a free block of addresses")
}

impl Drop for Network {
    fn drop(&mut self) {
        let mine = format!("{}-", self.switch);
        spaces()
            .iter()
            .filter(|space| space.starts_with(&mine))
            .for_each(|space| remove(space));
        remove(&self.switch);
    }
}

impl Node {
    /// The same command, on this node; as another user where the server refuses to be root.
    pub fn run(&self, command: &Command, user: Option<(u32, u32)>) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net={SPACES}/{}", self.0));
        if let Some((uid, gid)) = user {
            inside.args([format!("--setuid={uid}"), format!("--setgid={gid}")]);
        }
        inside
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
        // Nothing of our own surroundings, as with every hub that a test starts.
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
    /// The plug is pulled: the node sees that its line is dead, the others only that it says nothing.
    pub fn cut(&self) {
        must(&["-n", &self.switch, "link", "set", "dev", &self.port, "down"]);
    }

    /// The switch swallows whatever comes, and neither end can see it.
    pub fn swallow(&self) {
        must(&[
            "-n",
            &self.switch,
            "link",
            "set",
            "dev",
            &self.port,
            "nomaster",
        ]);
    }

    pub fn mend(&self) {
        must(&[
            "-n",
            &self.switch,
            "link",
            "set",
            "dev",
            &self.port,
            "master",
            self.net.bridge(),
        ]);
        must(&["-n", &self.switch, "link", "set", "dev", &self.port, "up"]);
    }
}
