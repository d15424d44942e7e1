//! Several hubs, of which one dies, or the bus, or the database: nothing that was acknowledged is lost, doubled or out of order,
//! and what cannot be done is refused and not pretended (law 4, R-24, R-25, D-80, D-82).

use crate::actors::{Hub, PATIENCE};
use crate::crash::{Ledger, envelope, hear, history, join, judge, reach, send, until};
use crate::servers::{Servers, address, before};
use chorus_client::Client;
use chorus_client::http::{Answer, Call};
use chorus_wire::cursor::Cursor;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Acknowledged sends between one event and the next.
const BETWEEN: usize = 100;
/// How long something is away.
const AWAY: Duration = Duration::from_secs(10);

/// Senders and one who hears, through one address, for as long as it takes.
pub struct Load {
    bob: Client,
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
    counted: watch::Receiver<usize>,
    senders: Vec<tokio::task::JoinHandle<()>>,
    heard: tokio::task::JoinHandle<crate::crash::Heard>,
}

impl Load {
    pub async fn start(url: &str) -> Self {
        let bob = join(url, "bob").await;
        let heard = tokio::spawn(hear(bob.inbox(Some(Cursor::START)).await));
        let (ledger, stop) = (Arc::<Mutex<Ledger>>::default(), Arc::<AtomicBool>::default());
        let (count, counted) = watch::channel(0);
        let count = Arc::new(count);
        let mut senders = Vec::new();
        for number in 0..4 {
            let name = format!("sender{number}");
            let client = join(url, &name).await;
            senders.push(tokio::spawn(send(client, name, ledger.clone(), count.clone(), stop.clone())));
        }
        Self { bob, ledger, stop, counted, senders, heard }
    }

    /// Until so many more sends were acknowledged.
    pub async fn goes_on(&mut self) {
        let goal = *self.counted.borrow() + BETWEEN;
        reach(&mut self.counted, goal).await;
    }

    /// Everything that was acknowledged is there once, and was heard once and in order.
    pub async fn ends_well(self) {
        self.stop.store(true, Ordering::SeqCst);
        for sender in self.senders {
            sender.await.unwrap();
        }
        let history = history(&self.bob).await;
        judge(&self.ledger.lock().unwrap(), &history);
        let last = *history.last_key_value().unwrap().0;
        let kept: Vec<(u64, String)> = history.into_iter().collect();
        assert_eq!(until(self.heard, last).await, kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_takes_nothing_with_it() {
    let Some(servers) = Servers::start() else { return };
    let mut hubs = vec![servers.hub("a", "127.0.0.1:0"), servers.hub("b", "127.0.0.1:0")];
    let (front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    load.goes_on().await;
    for turn in 0..2 {
        hubs[turn].process.signal("KILL");
        hubs[turn].process.await_end();
        load.goes_on().await;
        hubs[turn] = servers.hub(["a", "b"][turn], "127.0.0.1:0");
        front.turn_to(hubs.iter().map(address).collect());
        load.goes_on().await;
    }
    load.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hubs_are_restarted_one_by_one_under_load() {
    let Some(servers) = Servers::start() else { return };
    let names = ["a", "b", "c"];
    let mut hubs: Vec<Hub> = names.iter().map(|name| servers.hub(name, "127.0.0.1:0")).collect();
    let (front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    for (turn, name) in names.into_iter().enumerate() {
        load.goes_on().await;
        hubs[turn].process.signal("TERM");
        assert_eq!(hubs[turn].process.await_end(), Some(0), "it stops in good order");
        hubs[turn] = servers.hub(name, "127.0.0.1:0");
        front.turn_to(hubs.iter().map(address).collect());
    }
    load.goes_on().await;
    assert!(load.ledger.lock().unwrap().unknown.is_empty(), "whoever asks again is served by another hub");
    load.ends_well().await;
}

fn advisory(handle: &str, text: &str) -> String {
    let now = chorus_hub::Clock::system().now();
    json!({"frame": {"envelope_version": "1.0", "frame_id": chorus_client::frame::new_id(), "kind": "agent_advisory",
        "sender_handle": handle, "recipient_handle": handle, "created_at": now, "payload": {"advisory_text": text},
        "acted_by": handle, "drafted_with": "~cc-editor", "provenance_compute_location": "local-only",
        "provenance_method": ["x"], "provenance_context_check": "passed", "provenance_basis": "x"}})
    .to_string()
}

async fn frame(client: &Client, handle: &str) -> (u16, Value) {
    let Answer { status, body, .. } = client.ask(Call::post("/frames", advisory(handle, "hello"))).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Asks until it is so.
pub async fn eventually(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so().await {
        assert!(Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_messages_arrive_and_frames_are_refused_and_then_it_is_as_before() {
    let Some(mut servers) = Servers::start() else { return };
    let hubs = [servers.hub("a", "127.0.0.1:0"), servers.hub("b", "127.0.0.1:0")];
    let (_front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    let carol = join(&hubs[0].url, "carol").await;
    assert_eq!(frame(&carol, "~carol").await.0, 200);
    load.goes_on().await;
    servers.nats_down();
    let began = Instant::now();
    eventually("frames are refused", async || frame(&carol, "~carol").await.0 == 503).await;
    let (status, refusal) = frame(&carol, "~carol").await;
    assert_eq!((status, &refusal["code"]), (503, &json!("bus-unavailable")));
    assert_eq!(carol.ask(Call::get("/ready")).await.unwrap().status, 503);
    while began.elapsed() < AWAY {
        load.goes_on().await;
    }
    servers.nats_up();
    eventually("frames are taken", async || frame(&carol, "~carol").await.0 == 200).await;
    eventually("it is ready", async || carol.ask(Call::get("/ready")).await.unwrap().status == 200).await;
    load.goes_on().await;
    load.ends_well().await;
}

/// An inbox on one connection that nobody makes anew.
pub struct Inbox(TcpStream, String);

impl Inbox {
    pub fn open(hub: &Hub, key: &str) -> Self {
        let mut socket = TcpStream::connect(address(hub)).unwrap();
        let request = format!("GET /agent/inbox HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {key}\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut inbox = Self(socket, String::new());
        inbox.until("connected");
        inbox
    }

    /// Reads until this was said; a connection that ends before fails the test.
    pub fn until(&mut self, text: &str) {
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 4096];
        while !self.1.contains(text) {
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "the stream ended before {text}: {}", self.1);
            self.1.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_sends_are_refused_for_now_and_streams_stay_open() {
    let Some(mut servers) = Servers::start() else { return };
    let hubs = [servers.hub("a", "127.0.0.1:0"), servers.hub("b", "127.0.0.1:0")];
    let (_front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    load.goes_on().await;
    let (carol, key) = crate::crash::join_with_key(&hubs[0].url, "carol").await;
    let mut inboxes = [Inbox::open(&hubs[0], &key), Inbox::open(&hubs[1], &key)];
    servers.postgres_down();
    let began = Instant::now();
    let lost: Value = serde_json::from_str(&envelope("carol", "lost").to_json()).unwrap();
    let body = json!({"receiver_id": "carol@chorus", "envelope": lost});
    let mut refused = 0;
    eventually("it was away long enough", async || {
        let answer = carol.ask(Call::post("/messages", body.to_string())).await.unwrap();
        assert_eq!(answer.status, 503, "{}", String::from_utf8_lossy(&answer.body));
        refused += 1;
        began.elapsed() >= AWAY
    })
    .await;
    assert!(refused > 3, "a refusal comes soon");
    servers.postgres_up();
    load.goes_on().await;
    carol.send("carol@chorus", &envelope("carol", "found"), 0).await.unwrap();
    for inbox in &mut inboxes {
        inbox.until("found");
        assert!(!inbox.1.contains("lost"), "nothing is half done");
    }
    load.ends_well().await;
}
