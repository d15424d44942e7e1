//! Hubs on a network that comes apart: whoever is cut off promises nothing, the others go on, and when the line is whole again
//! nothing is missing, doubled or out of order anywhere (law 4, D-80, D-81, D-82).

use crate::actors::Hub;
use crate::crash::{envelope, join, join_with_key};
use crate::faults::{Inbox, eventually, frame, frame_named};
use crate::network::{Net, Network, Wire};
use crate::servers::{Nats, Servers};
use crate::split_bus::rotate;
use chorus_client::HubClient;
use chorus_client::http::{ApiCall, HttpAnswer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A hub on a node of its own, and its lines.
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
            hub: Hub::begin(node.run(&command, None)),
            database,
            bus,
        }
    }

    pub fn url(&self) -> &str {
        &self.hub.url
    }
}

/// Two hubs that share a PostgreSQL and a NATS, four machines in all. What goes first is dropped first.
pub struct Land {
    pub near: Machine,
    pub far: Machine,
    _servers: Servers,
    _network: Network,
}

impl Land {
    pub fn settle() -> Option<Self> {
        let network = Network::make()?;
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

/// Sends, and says what became of it.
pub async fn says(client: &HubClient, from: &str, to: &str, text: &str) -> String {
    client
        .send_message(&format!("{to}@chorus"), &envelope(from, text), 0)
        .await
        .unwrap()
        .sent
        .delivery
}

/// One attempt under a key of the sender's own.
pub async fn once(
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

pub async fn status(client: &HubClient, path: &str) -> u16 {
    client.send_call(ApiCall::get(path)).await.unwrap().status
}

pub async fn data(client: &HubClient, path: &str) -> Value {
    client.fetch_data(ApiCall::get(path)).await.unwrap()
}

/// Everything that an agent has a part in, in its order.
pub async fn texts(client: &HubClient) -> Vec<String> {
    crate::crash::history(client).await.into_values().collect()
}

/// The same agent at another hub.
pub fn at(machine: &Machine, key: &str) -> HubClient {
    HubClient::new(
        machine.url(),
        Some(chorus_wire::secret::Secret::new(key.to_owned())),
    )
    .unwrap()
}

/// A refusal that says to come back, and not a silence.
#[track_caller]
pub fn refused(answer: chorus_client::Result<HttpAnswer>) {
    let answer = answer.expect("an answer");
    assert_eq!(
        answer.status,
        503,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_cut_off_promises_nothing_and_then_misses_nothing() {
    let Some(land) = Land::settle() else { return };
    let Land { near, far, .. } = &land;
    let alice = join(near.url(), "alice").await;
    let (bob, key) = join_with_key(far.url(), "bob").await;
    let mut inbox = Inbox::open(&far.hub, &key);
    assert_eq!(
        says(&alice, "alice", "bob", "before").await,
        "delivered_sse"
    );
    inbox.until("before");
    far.database.cut();
    far.bus.cut();
    let mut sent = vec!["before".to_owned()];
    for number in 0..20 {
        let (text, began) = (format!("while {number:02}"), Instant::now());
        assert_eq!(
            says(&alice, "alice", "bob", &text).await,
            "queued",
            "it cannot have been heard"
        );
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the near hub goes on"
        );
        sent.push(text);
    }
    assert_eq!(status(&alice, "/ready").await, 200);
    eventually("the far hub is known to be gone", async || {
        data(&alice, "/agents/bob@chorus").await["online"] == false
    })
    .await;
    refused(once(&bob, "bob", "alice", "cut off", "first-try").await);
    assert_eq!(status(&bob, "/ready").await, 503);
    assert_eq!(inbox.said(), ["before"], "the stream is open, and silent");
    far.database.mend();
    far.bus.mend();
    inbox.until(sent.last().unwrap());
    eventually("a send is a delivery again", async || {
        sent.push(format!("after {}", sent.len()));
        says(&alice, "alice", "bob", sent.last().unwrap()).await == "delivered_sse"
    })
    .await;
    inbox.until(sent.last().unwrap());
    assert_eq!(inbox.said(), sent, "everything, in order and once");
    eventually("it is ready", async || status(&bob, "/ready").await == 200).await;
    // Nobody knows what became of the first try; under its key it is done once.
    let again = once(&at(near, &key), "bob", "alice", "cut off", "first-try")
        .await
        .unwrap();
    assert!(
        (200..300).contains(&again.status),
        "{}",
        String::from_utf8_lossy(&again.body)
    );
    assert_eq!(
        texts(&alice)
            .await
            .iter()
            .filter(|text| *text == "cut off")
            .count(),
        1
    );
}

/// D-80, D-81: a hub without the database does nothing that it would have to take back, and one that has it does not wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_loses_only_the_database_refuses_and_keeps_its_streams() {
    let Some(land) = Land::settle() else { return };
    let Land { near, far, .. } = &land;
    let alice = join(near.url(), "alice").await;
    let (bob, key) = join_with_key(far.url(), "bob").await;
    let mut inbox = Inbox::open(&far.hub, &key);
    assert_eq!(
        says(&alice, "alice", "bob", "before").await,
        "delivered_sse"
    );
    far.database.cut();
    let mut sent = vec!["before".to_owned()];
    for number in 0..5 {
        sent.push(format!("while {number}"));
        // The far hub is there, and says that it has heard nothing.
        assert_eq!(
            says(&alice, "alice", "bob", sent.last().unwrap()).await,
            "queued"
        );
    }
    refused(once(&bob, "bob", "alice", "cut off", "one").await);
    assert_eq!(status(&bob, "/ready").await, 503);
    assert_eq!(status(&alice, "/ready").await, 200);
    far.database.mend();
    inbox.until(sent.last().unwrap());
    eventually("a send is a delivery again", async || {
        sent.push(format!("after {}", sent.len()));
        says(&alice, "alice", "bob", sent.last().unwrap()).await == "delivered_sse"
    })
    .await;
    inbox.until(sent.last().unwrap());
    assert_eq!(inbox.said(), sent);
    eventually("it is ready", async || status(&bob, "/ready").await == 200).await;
}

/// D-81: a hub that cannot know whose key was taken back tells nobody anything until it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_taken_back_hears_no_frame_at_a_hub_without_the_database() {
    let Some(land) = Land::settle() else { return };
    let Land { near, far, .. } = &land;
    let mut keys = Vec::new();
    let mut sessions = Vec::new();
    for name in ["bob", "carol"] {
        let (client, key) = join_with_key(near.url(), name).await;
        let path = format!("/handles/~{name}/stream?instrument=cc-editor&session=s2");
        let mut session = Inbox::open_at(&far.hub, &key, &path);
        assert_eq!(
            frame(&client, &format!("~{name}"), "before").await,
            (200, json!(1))
        );
        session.until("before");
        sessions.push(session);
        keys.push(key);
    }
    far.database.cut();
    let (bob, carol) = (rotate(near, "bob", &keys[0]).await, at(near, &keys[1]));
    eventually("the far hub trusts nothing", async || {
        status(&at(far, &keys[0]), "/agent/messages").await == 503
    })
    .await;
    for number in 0..3 {
        frame(&bob, "~bob", &format!("secret {number}")).await;
        frame(&carol, "~carol", &format!("later {number}")).await;
    }
    far.database.mend();
    sessions[0].until("key_rotated");
    assert_eq!(sessions[0].said(), ["before"]);
    // Whose key is good has missed nothing.
    sessions[1].until("later 2");
    assert_eq!(
        sessions[1].said(),
        ["before", "later 0", "later 1", "later 2"]
    );
}

/// D-80, D-82
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_loses_only_the_bus_hears_messages_and_refuses_frames() {
    let Some(land) = Land::settle() else { return };
    let Land { near, far, .. } = &land;
    let alice = join(near.url(), "alice").await;
    let mut bob = Everywhere::join("bob", [near, far]).await;
    assert_eq!(frame(&bob.clients[1], "~bob", "all").await, (200, json!(2)));
    far.bus.cut();
    // Nobody knows whether the bus still gets what it did not answer to; R-53: under its id it is heard once all the same.
    let id = chorus_client::frame::random_uuid().to_string();
    assert_eq!(
        frame_named(&bob.clients[1], "~bob", "unsure", &id).await,
        (503, json!("bus-unavailable"))
    );
    eventually("the far session is gone", async || {
        frame(&bob.clients[0], "~bob", "here").await == (200, json!(1))
    })
    .await;
    let began = Instant::now();
    says(&alice, "alice", "bob", "by the log").await;
    bob.inboxes[1].until("by the log");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "nothing waits for the bus: {:?}",
        began.elapsed()
    );
    far.bus.mend();
    bob.right_again().await;
    assert_eq!(
        frame_named(&bob.clients[0], "~bob", "unsure", &id).await,
        (200, json!(2))
    );
    assert_eq!(
        frame(&bob.clients[0], "~bob", "last").await,
        (200, json!(2))
    );
    for session in &mut bob.sessions {
        session.until("last");
        assert_eq!(
            session
                .said()
                .iter()
                .filter(|text| *text == "unsure")
                .count(),
            1
        );
    }
}

/// Whoever has a stream or a session at both hubs.
pub struct Everywhere {
    pub inboxes: [Inbox; 2],
    pub sessions: [Inbox; 2],
    pub clients: [HubClient; 2],
}

impl Everywhere {
    pub async fn join(name: &str, machines: [&Machine; 2]) -> Self {
        let (_, key) = join_with_key(machines[0].url(), name).await;
        let inboxes = machines.map(|machine| Inbox::open(&machine.hub, &key));
        let path =
            |session| format!("/handles/~{name}/stream?instrument=cc-editor&session={session}");
        let sessions = [(machines[0], "s1"), (machines[1], "s2")]
            .map(|(machine, session)| Inbox::open_at(&machine.hub, &key, &path(session)));
        Self {
            inboxes,
            sessions,
            clients: machines.map(|machine| at(machine, &key)),
        }
    }
}

impl Everywhere {
    /// Counts, roster and presence are the same at both hubs, and a frame from either is heard at both.
    pub async fn right_again(&mut self) {
        for (side, client) in self.clients.iter().enumerate() {
            let (mut tries, mut text) = (0, String::new());
            eventually("both sessions count", async || {
                (tries, text) = (tries + 1, format!("again {side} {tries}"));
                frame(client, "~bob", &text).await == (200, json!(2))
            })
            .await;
            self.sessions
                .iter_mut()
                .for_each(|session| session.until(&format!("{text}\"")));
        }
        for client in &self.clients {
            eventually("the roster is whole", async || {
                sessions(client).await == ["s1", "s2"]
            })
            .await;
            eventually("every stream counts", async || {
                data(client, "/health").await["inbox_connections"] == 2
            })
            .await;
            assert_eq!(data(client, "/agents/bob@chorus").await["online"], true);
        }
        let [one, other] = self.sessions.each_mut().map(Inbox::said);
        assert_eq!(one, other, "each session heard every frame, in one order");
    }
}

async fn sessions(client: &HubClient) -> Vec<String> {
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
