//! Network partitions: a hub that is cut off acknowledges nothing, the others continue, and after the partition no message is
//! missing, doubled or out of order (invariant 4, D-80, D-81, D-82).

use crate::actors::Hub;
use crate::crash::{envelope, register_client, register_with_key};
use crate::faults::{RawStream, eventually, send_frame, send_frame_with_id};
use crate::network::{Net, Network, Wire};
use crate::servers::{Nats, Servers};
use crate::split_bus::rotate_key;
use chorus_client::HubClient;
use chorus_client::http::{ApiCall, HttpAnswer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A hub on its own node, and its links.
pub struct Machine {
    pub hub: Hub,
    pub database: Wire,
    pub bus: Wire,
}

impl Machine {
    pub fn start(network: &Network, servers: &Servers, nats: &Nats, name: &str) -> Self {
        let node = network.node(name);
        let [clients, database, bus] =
            [Net::Clients, Net::Database, Net::Bus].map(|net| network.wire(&node, net));
        let command = servers.hub_command(name, &format!("{}:0", clients.address), nats);
        Self {
            hub: Hub::start_command(node.run(&command, None)),
            database,
            bus,
        }
    }

    pub fn url(&self) -> &str {
        &self.hub.url
    }
}

/// Two hubs that share a PostgreSQL and a NATS, on four nodes. The fields are dropped in order.
pub struct TwoHubs {
    pub near: Machine,
    pub far: Machine,
    _servers: Servers,
    _network: Network,
}

impl TwoHubs {
    pub fn start() -> Option<Self> {
        let network = Network::create()?;
        let servers = Servers::start_on(&network)?;
        let [near, far] =
            ["near", "far"].map(|name| Machine::start(&network, &servers, &servers.nats, name));
        Some(Self {
            near,
            far,
            _servers: servers,
            _network: network,
        })
    }
}

/// Sends a message and returns its delivery state.
pub async fn send_text(client: &HubClient, from: &str, to: &str, text: &str) -> String {
    client
        .send_message(&format!("{to}@chorus"), &envelope(from, text), 0)
        .await
        .unwrap()
        .sent
        .delivery
}

/// Sends a message once, with an idempotency key.
pub async fn send_with_key(
    client: &HubClient,
    from: &str,
    to: &str,
    text: &str,
    key: &str,
) -> chorus_client::Result<HttpAnswer> {
    let envelope: Value = serde_json::from_str(&envelope(from, text).to_json()).unwrap();
    let body = json!({"receiver_id": format!("{to}@chorus"), "envelope": envelope}).to_string();
    client
        .send_call(ApiCall {
            idempotency_key: Some(key.to_owned()),
            ..ApiCall::post("/messages", body)
        })
        .await
}

pub async fn fetch_status(client: &HubClient, path: &str) -> u16 {
    client.send_call(ApiCall::get(path)).await.unwrap().status
}

pub async fn fetch_json(client: &HubClient, path: &str) -> Value {
    client.fetch_data(ApiCall::get(path)).await.unwrap()
}

/// The texts of an agent's history, in order.
pub async fn fetch_texts(client: &HubClient) -> Vec<String> {
    crate::crash::fetch_all_texts(client)
        .await
        .into_values()
        .collect()
}

/// A client for this hub with an agent's key.
pub fn client_at(machine: &Machine, key: &str) -> HubClient {
    HubClient::new(
        machine.url(),
        Some(chorus_wire::secret::Secret::new(key.to_owned())),
    )
    .unwrap()
}

/// Checks that the answer is a 503.
#[track_caller]
pub fn assert_unavailable(answer: chorus_client::Result<HttpAnswer>) {
    let answer = answer.expect("an answer");
    assert_eq!(
        answer.status,
        503,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_cut_off_acknowledges_nothing_and_later_misses_nothing() {
    let Some(cluster) = TwoHubs::start() else {
        return;
    };
    let TwoHubs { near, far, .. } = &cluster;
    let alice = register_client(near.url(), "alice").await;
    let (bob, key) = register_with_key(far.url(), "bob").await;
    let mut inbox = RawStream::open(&far.hub, &key);
    assert_eq!(
        send_text(&alice, "alice", "bob", "before").await,
        "delivered_sse"
    );
    inbox.read_until("before");
    far.database.cut();
    far.bus.cut();
    let mut sent = vec!["before".to_owned()];
    for number in 0..20 {
        let text = format!("while {number:02}");
        let started_at = Instant::now();
        assert_eq!(
            send_text(&alice, "alice", "bob", &text).await,
            "queued",
            "it cannot have been delivered"
        );
        assert!(
            started_at.elapsed() < Duration::from_secs(10),
            "the near hub continues"
        );
        sent.push(text);
    }
    assert_eq!(fetch_status(&alice, "/ready").await, 200);
    eventually("the far hub is reported as gone", async || {
        fetch_json(&alice, "/agents/bob@chorus").await["online"] == false
    })
    .await;
    assert_unavailable(send_with_key(&bob, "bob", "alice", "cut off", "first-try").await);
    assert_eq!(fetch_status(&bob, "/ready").await, 503);
    assert_eq!(
        inbox.received_texts(),
        ["before"],
        "the stream is open and silent"
    );
    far.database.restore();
    far.bus.restore();
    inbox.read_until(sent.last().unwrap());
    eventually("a send is a delivery again", async || {
        sent.push(format!("after {}", sent.len()));
        send_text(&alice, "alice", "bob", sent.last().unwrap()).await == "delivered_sse"
    })
    .await;
    inbox.read_until(sent.last().unwrap());
    assert_eq!(inbox.received_texts(), sent, "every message once, in order");
    eventually("it is ready", async || {
        fetch_status(&bob, "/ready").await == 200
    })
    .await;
    assert_retry_is_applied_once(&client_at(near, &key), &alice).await;
}

/// The outcome of the first try is unknown; with its key it is applied once.
async fn assert_retry_is_applied_once(bob: &HubClient, alice: &HubClient) {
    let again = send_with_key(bob, "bob", "alice", "cut off", "first-try").await;
    let again = again.unwrap();
    let body = String::from_utf8_lossy(&again.body);
    assert!((200..300).contains(&again.status), "{body}");
    let texts = fetch_texts(alice).await;
    assert_eq!(texts.iter().filter(|text| *text == "cut off").count(), 1);
}

/// D-80, D-81: a hub without the database refuses writes, and a hub with it does not wait for the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_loses_only_the_database_refuses_and_keeps_its_streams() {
    let Some(cluster) = TwoHubs::start() else {
        return;
    };
    let TwoHubs { near, far, .. } = &cluster;
    let alice = register_client(near.url(), "alice").await;
    let (bob, key) = register_with_key(far.url(), "bob").await;
    let mut inbox = RawStream::open(&far.hub, &key);
    assert_eq!(
        send_text(&alice, "alice", "bob", "before").await,
        "delivered_sse"
    );
    far.database.cut();
    let mut sent = vec!["before".to_owned()];
    for number in 0..5 {
        sent.push(format!("while {number}"));
        // The far hub answers that it has not delivered the message.
        assert_eq!(
            send_text(&alice, "alice", "bob", sent.last().unwrap()).await,
            "queued"
        );
    }
    assert_unavailable(send_with_key(&bob, "bob", "alice", "cut off", "one").await);
    assert_eq!(fetch_status(&bob, "/ready").await, 503);
    assert_eq!(fetch_status(&alice, "/ready").await, 200);
    far.database.restore();
    inbox.read_until(sent.last().unwrap());
    eventually("a send is a delivery again", async || {
        sent.push(format!("after {}", sent.len()));
        send_text(&alice, "alice", "bob", sent.last().unwrap()).await == "delivered_sse"
    })
    .await;
    inbox.read_until(sent.last().unwrap());
    assert_eq!(inbox.received_texts(), sent);
    eventually("it is ready", async || {
        fetch_status(&bob, "/ready").await == 200
    })
    .await;
}

/// D-81: a hub that cannot learn of revoked keys delivers nothing until it can.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_gets_no_frame_at_a_hub_without_the_database() {
    let Some(cluster) = TwoHubs::start() else {
        return;
    };
    let TwoHubs { near, far, .. } = &cluster;
    let mut keys = Vec::new();
    let mut sessions = Vec::new();
    for name in ["bob", "carol"] {
        let (client, key) = register_with_key(near.url(), name).await;
        let path = format!("/handles/~{name}/stream?instrument=cc-editor&session=s2");
        let mut session = RawStream::open_at(&far.hub, &key, &path);
        assert_eq!(
            send_frame(&client, &format!("~{name}"), "before").await,
            (200, json!(1))
        );
        session.read_until("before");
        sessions.push(session);
        keys.push(key);
    }
    far.database.cut();
    let bob = rotate_key(near, "bob", &keys[0]).await;
    let carol = client_at(near, &keys[1]);
    eventually("the far hub refuses all keys", async || {
        fetch_status(&client_at(far, &keys[0]), "/agent/messages").await == 503
    })
    .await;
    for number in 0..3 {
        send_frame(&bob, "~bob", &format!("secret {number}")).await;
        send_frame(&carol, "~carol", &format!("later {number}")).await;
    }
    far.database.restore();
    sessions[0].read_until("key_rotated");
    assert_eq!(sessions[0].received_texts(), ["before"]);
    // A valid key has missed no frame.
    sessions[1].read_until("later 2");
    assert_eq!(
        sessions[1].received_texts(),
        ["before", "later 0", "later 1", "later 2"]
    );
}

/// D-80, D-82
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_loses_only_the_bus_delivers_messages_and_refuses_frames() {
    let Some(cluster) = TwoHubs::start() else {
        return;
    };
    let TwoHubs { near, far, .. } = &cluster;
    let alice = register_client(near.url(), "alice").await;
    let mut bob = AgentAtBothHubs::register_client("bob", [near, far]).await;
    assert_eq!(
        send_frame(&bob.clients[1], "~bob", "all").await,
        (200, json!(2))
    );
    far.bus.cut();
    // It is unknown whether the bus got the frame. With the same id it is delivered once all the same.
    let id = chorus_client::frame::random_uuid().to_string();
    assert_eq!(
        send_frame_with_id(&bob.clients[1], "~bob", "unsure", &id).await,
        (503, json!("bus-unavailable"))
    );
    eventually("the far session is gone", async || {
        send_frame(&bob.clients[0], "~bob", "here").await == (200, json!(1))
    })
    .await;
    let started_at = Instant::now();
    send_text(&alice, "alice", "bob", "by the log").await;
    bob.inboxes[1].read_until("by the log");
    assert!(
        started_at.elapsed() < Duration::from_secs(5),
        "nothing waits for the bus: {:?}",
        started_at.elapsed()
    );
    far.bus.restore();
    bob.wait_consistent().await;
    assert_eq!(
        send_frame_with_id(&bob.clients[0], "~bob", "unsure", &id).await,
        (200, json!(2))
    );
    assert_eq!(
        send_frame(&bob.clients[0], "~bob", "last").await,
        (200, json!(2))
    );
    for session in &mut bob.sessions {
        session.read_until("last");
        assert_eq!(
            session
                .received_texts()
                .iter()
                .filter(|text| *text == "unsure")
                .count(),
            1
        );
    }
}

/// An agent with an inbox stream and a frame session at both hubs.
pub struct AgentAtBothHubs {
    pub inboxes: [RawStream; 2],
    pub sessions: [RawStream; 2],
    pub clients: [HubClient; 2],
}

impl AgentAtBothHubs {
    pub async fn register_client(name: &str, machines: [&Machine; 2]) -> Self {
        let (_, key) = register_with_key(machines[0].url(), name).await;
        let inboxes = machines.map(|machine| RawStream::open(&machine.hub, &key));
        let path =
            |session| format!("/handles/~{name}/stream?instrument=cc-editor&session={session}");
        let sessions = [(machines[0], "s1"), (machines[1], "s2")]
            .map(|(machine, session)| RawStream::open_at(&machine.hub, &key, &path(session)));
        Self {
            inboxes,
            sessions,
            clients: machines.map(|machine| client_at(machine, &key)),
        }
    }
}

impl AgentAtBothHubs {
    /// Waits until counts, roster and presence are equal at both hubs, and a frame from either is delivered at both.
    pub async fn wait_consistent(&mut self) {
        for (side, client) in self.clients.iter().enumerate() {
            let mut tries = 0;
            let mut text = String::new();
            eventually("both sessions are counted", async || {
                text = format!("again {side} {tries}");
                tries += 1;
                send_frame(client, "~bob", &text).await == (200, json!(2))
            })
            .await;
            self.sessions
                .iter_mut()
                .for_each(|session| session.read_until(&format!("{text}\"")));
        }
        for client in &self.clients {
            eventually("the roster is complete", async || {
                fetch_sessions(client).await == ["s1", "s2"]
            })
            .await;
            eventually("every stream is counted", async || {
                fetch_json(client, "/health").await["inbox_connections"] == 2
            })
            .await;
            assert_eq!(
                fetch_json(client, "/agents/bob@chorus").await["online"],
                true
            );
        }
        let [one, other] = self.sessions.each_mut().map(RawStream::received_texts);
        assert_eq!(
            one, other,
            "each session got every frame, in the same order"
        );
    }
}

async fn fetch_sessions(client: &HubClient) -> Vec<String> {
    let answer = client
        .send_call(ApiCall::get("/handles/~bob/roster"))
        .await
        .unwrap();
    let roster: Value = serde_json::from_slice(&answer.body).unwrap();
    let mut names: Vec<String> = roster["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["session"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}
