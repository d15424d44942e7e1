//! Several hubs, of which one dies, or the bus, or the database: nothing that was acknowledged is lost, doubled or out of order,
//! and what cannot be done is refused and not pretended (law 4, R-24, R-25, D-80, D-82).

use crate::actors::{Hub, PATIENCE};
use crate::crash::{Ledger, envelope, hear, history, join, judge, reach, send, until};
use crate::servers::{Servers, address, before};
use chorus_client::HubClient;
use chorus_client::http::{ApiCall, HttpAnswer};
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
    pub bob: HubClient,
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
    counted: watch::Receiver<usize>,
    senders: Vec<tokio::task::JoinHandle<()>>,
    heard: tokio::task::JoinHandle<crate::crash::Heard>,
}

impl Load {
    pub async fn start(url: &str) -> Self {
        let bob = join(url, "bob").await;
        let heard = tokio::spawn(hear(bob.open_inbox(Some(Cursor::START)).await));
        let (ledger, stop) = (
            Arc::<Mutex<Ledger>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (count, counted) = watch::channel(0);
        let count = Arc::new(count);
        let mut senders = Vec::new();
        for number in 0..4 {
            let name = format!("sender{number}");
            let client = join(url, &name).await;
            senders.push(tokio::spawn(send(
                client,
                name,
                ledger.clone(),
                count.clone(),
                stop.clone(),
            )));
        }
        Self {
            bob,
            ledger,
            stop,
            counted,
            senders,
            heard,
        }
    }

    /// Until so many more sends were acknowledged.
    pub async fn goes_on(&mut self) {
        let goal = *self.counted.borrow() + BETWEEN;
        reach(&mut self.counted, goal).await;
    }

    /// Every send so far was acknowledged in the end: whoever asks again is served by another hub.
    fn nobody_gave_up(&self) {
        let ledger = self.ledger.lock().unwrap();
        assert!(ledger.unknown.is_empty(), "{:?}", ledger.unknown);
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
    let Some(servers) = Servers::start() else {
        return;
    };
    let mut hubs = vec![
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
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
    load.nobody_gave_up();
    load.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hubs_are_restarted_one_by_one_under_load() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let names = ["a", "b", "c"];
    let mut hubs: Vec<Hub> = names
        .iter()
        .map(|name| servers.hub(name, "127.0.0.1:0"))
        .collect();
    let (front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    for (turn, name) in names.into_iter().enumerate() {
        load.goes_on().await;
        hubs[turn].process.signal("TERM");
        if name == "b" {
            // One that does not get to the end of stopping.
            hubs[turn].process.signal("KILL");
        }
        let ended = hubs[turn].process.await_end();
        assert!(
            name == "b" || ended == Some(0),
            "it stops in good order: {ended:?}"
        );
        hubs[turn] = servers.hub(name, "127.0.0.1:0");
        front.turn_to(hubs.iter().map(address).collect());
    }
    load.goes_on().await;
    load.nobody_gave_up();
    load.ends_well().await;
}

fn advisory(handle: &str, text: &str, id: &str) -> String {
    let now = chorus_hub::Clock::system().now();
    json!({"frame": {"envelope_version": "1.0", "frame_id": id, "kind": "agent_advisory",
        "sender_handle": handle, "recipient_handle": handle, "created_at": now, "payload": {"advisory_text": text},
        "acted_by": handle, "drafted_with": "~cc-editor", "provenance_compute_location": "local-only",
        "provenance_method": ["x"], "provenance_context_check": "passed", "provenance_basis": "x"}})
    .to_string()
}

/// Tells all sessions of a handle: the status, and the count or the reason.
pub async fn frame(client: &HubClient, handle: &str, text: &str) -> (u16, Value) {
    frame_named(
        client,
        handle,
        text,
        &chorus_client::frame::random_uuid().to_string(),
    )
    .await
}

/// The same under an id that was used before.
pub async fn frame_named(client: &HubClient, handle: &str, text: &str, id: &str) -> (u16, Value) {
    let HttpAnswer { status, body, .. } = client
        .send_call(ApiCall::post("/frames", advisory(handle, text, id)))
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    (
        status,
        body[if status == 200 {
            "recipient_count"
        } else {
            "code"
        }]
        .clone(),
    )
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
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
    let (_front, url) = before(&hubs).await;
    let mut load = Load::start(&url).await;
    let carol = join(&hubs[0].url, "carol").await;
    assert_eq!(frame(&carol, "~carol", "hello").await.0, 200);
    load.goes_on().await;
    servers.nats_down();
    let began = Instant::now();
    eventually("frames are refused", async || {
        frame(&carol, "~carol", "hello").await.0 == 503
    })
    .await;
    assert_eq!(
        frame(&carol, "~carol", "refused").await,
        (503, json!("bus-unavailable"))
    );
    assert_eq!(
        carol
            .send_call(ApiCall::get("/ready"))
            .await
            .unwrap()
            .status,
        503
    );
    while began.elapsed() < AWAY {
        load.goes_on().await;
    }
    servers.nats_up();
    eventually("frames are taken", async || {
        frame(&carol, "~carol", "hello").await.0 == 200
    })
    .await;
    eventually("it is ready", async || {
        carol
            .send_call(ApiCall::get("/ready"))
            .await
            .unwrap()
            .status
            == 200
    })
    .await;
    load.goes_on().await;
    load.ends_well().await;
}

/// An inbox, or another stream, on one connection that nobody makes anew.
pub struct Inbox {
    socket: TcpStream,
    heard: String,
}

impl Inbox {
    pub fn open(hub: &Hub, key: &str) -> Self {
        Self::open_at(hub, key, "/agent/inbox")
    }

    pub fn open_at(hub: &Hub, key: &str, path: &str) -> Self {
        let mut socket = TcpStream::connect(address(hub)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {key}\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut stream = Self {
            socket,
            heard: String::new(),
        };
        stream.until("event: connected");
        stream
    }

    /// Reads until this was said; a connection that ends before fails the test.
    #[track_caller]
    pub fn until(&mut self, text: &str) {
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 4096];
        while !self.heard.contains(text) {
            let count = match self.socket.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read
                    .unwrap_or_else(|error| panic!("{text} was not said: {error}: {}", self.heard)),
            };
            assert!(count > 0, "the stream ended before {text}: {}", self.heard);
            self.heard
                .push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }

    /// The texts of all messages and advisories that came so far, in their order.
    pub fn said(&mut self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        let _ = self.socket.read_to_end(&mut rest);
        self.socket.set_nonblocking(false).unwrap();
        self.heard.push_str(&String::from_utf8_lossy(&rest));
        let texts = self
            .heard
            .split("\"original_text\":\"")
            .flat_map(|part| part.split("\"advisory_text\":\""));
        texts
            .skip(1)
            .filter_map(|part| part.split('"').next())
            .map(str::to_owned)
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_sends_are_refused_for_now_and_streams_stay_open() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
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
        let answer = carol
            .send_call(ApiCall::post("/messages", body.to_string()))
            .await
            .unwrap();
        assert_eq!(
            answer.status,
            503,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        refused += 1;
        began.elapsed() >= AWAY
    })
    .await;
    assert!(refused > 3, "a refusal comes soon");
    servers.postgres_up();
    load.goes_on().await;
    carol
        .send_message("carol@chorus", &envelope("carol", "found"), 0)
        .await
        .unwrap();
    for inbox in &mut inboxes {
        inbox.until("found");
        assert_eq!(inbox.said(), ["found"], "nothing is half done");
    }
    load.ends_well().await;
}
