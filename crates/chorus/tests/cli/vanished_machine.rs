//! A hub alone on PostgreSQL whose machine vanishes without a word: the server, and not the successor, must find out that its
//! connections are dead, and then another hub starts in its place (fault F4).

use crate::actors::{Hub, RunningProcess};
use crate::crash::register_client;
use crate::network::{Net, Network, Node, Wire};
use crate::servers::{Servers, await_condition};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What docs/operations.md says: half a minute. The server needs twenty seconds of it.
const REPLACED_WITHIN: Duration = Duration::from_secs(30);

/// A machine with a hub that has the database to itself.
struct HubMachine {
    node: Node,
    command: Command,
    wires: [Wire; 2],
}

impl HubMachine {
    fn new(network: &Network, servers: &Servers, name: &str) -> Self {
        let seal_key = servers.folder.path().join("shared-seal.key");
        std::fs::write(&seal_key, "7".repeat(64)).unwrap();
        let seal_key = seal_key.display().to_string();
        let node = network.node(name);
        let wires = [Net::Clients, Net::Database].map(|net| network.wire(&node, net));
        let database = format!(
            "postgres://postgres@{}/postgres?sslmode=disable",
            servers.postgres_address
        );
        let listen = format!("{}:0", wires[0].address);
        let options = [
            "--data-dir",
            name,
            "--listen",
            &listen,
            "--database",
            &database,
            "--seal-key-file",
            &seal_key,
        ];
        Self {
            node,
            command: Hub::command(servers.folder.path(), &options),
            wires,
        }
    }

    fn start_hub(&self) -> RunningProcess {
        RunningProcess::start(self.node.run(&self.command, None))
    }

    /// From here on it says nothing: neither to clients, nor that its connections have ended.
    fn vanish(self, mut hub: RunningProcess) -> Instant {
        self.wires.iter().for_each(Wire::cut);
        hub.send_signal("KILL");
        hub.await_exit();
        Instant::now()
    }
}

/// A session with the database, beside the hub's.
struct SqlSession {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl SqlSession {
    fn open(servers: &Servers) -> Self {
        let mut command = servers.psql_command();
        command.args(["--quiet", "--no-align", "--tuples-only", "--no-psqlrc"]);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// Runs a query and returns its one value.
    fn ask(&mut self, sql: &str) -> String {
        writeln!(self.input, "{sql};").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for SqlSession {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn await_successor(network: &Network, servers: &Servers, vanished_at: Instant) {
    let machine = HubMachine::new(network, servers, "successor");
    loop {
        let mut successor = machine.start_hub();
        if successor.try_next_line().is_some() {
            break;
        }
        assert_eq!(successor.await_exit(), Some(1));
        let waited = vanished_at.elapsed();
        assert!(waited < REPLACED_WITHIN, "no successor after {waited:?}");
    }
    println!("a successor after {:?}", vanished_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_whose_machine_vanished_can_be_replaced_within_half_a_minute() {
    let Some(network) = Network::create() else {
        return;
    };
    let Some(servers) = Servers::start_on(&network) else {
        return;
    };
    let machine = HubMachine::new(&network, &servers, "lost");
    let hub = machine.start_hub();
    assert!(hub.next_line().starts_with("chorus listening on "));
    let vanished_at = machine.vanish(hub);
    await_successor(&network, &servers, vanished_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_vanished_before_it_took_an_answer_can_be_replaced_as_soon() {
    // While bytes of an answer are not acknowledged, no keepalive is sent: another timeout of the server must end the session.
    let Some(network) = Network::create() else {
        return;
    };
    let Some(servers) = Servers::start_on(&network) else {
        return;
    };
    let machine = HubMachine::new(&network, &servers, "lost");
    let hub = machine.start_hub();
    let line = hub.next_line();
    let url = line
        .strip_prefix("chorus listening on ")
        .unwrap()
        .to_owned();
    // The hub's writer waits for this session.
    let mut sql = SqlSession::open(&servers);
    let locked = sql.ask("begin; lock table principals in access exclusive mode; select 'locked'");
    assert_eq!(locked, "locked");
    let registration = tokio::spawn(async move { register_client(&url, "alice").await });
    let mut observer = SqlSession::open(&servers);
    await_condition("the writer waits", || {
        observer.ask("select count(*) > 0 from pg_locks where not granted") == "t"
    });
    let vanished_at = machine.vanish(hub);
    assert_eq!(sql.ask("commit; select 'answered'"), "answered");
    await_successor(&network, &servers, vanished_at);
    registration.abort();
}
