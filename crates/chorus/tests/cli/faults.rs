//! Several hubs, of which one fails, or the bus, or the database: no acknowledged message is lost, doubled or out of order,
//! and what cannot be done is refused (invariant 4, R-24, R-25, D-80, D-82).

use crate::actors::{Hub, TIMEOUT};
use crate::crash::{
    SendRecord, check_history, collect_messages, envelope, fetch_all_texts, read_until_seq,
    register_client, send_messages, wait_for_count,
};
use crate::servers::{Servers, hub_address, start_front};
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

/// Acknowledged sends between two faults.
const SENDS_PER_STEP: usize = 100;
/// How long a server stays down.
const DOWNTIME: Duration = Duration::from_secs(10);

/// Several senders and one receiver behind one address, running until stopped.
pub struct Load {
    pub bob: HubClient,
    record: Arc<Mutex<SendRecord>>,
    stop: Arc<AtomicBool>,
    counted: watch::Receiver<usize>,
    senders: Vec<tokio::task::JoinHandle<()>>,
    received: tokio::task::JoinHandle<crate::crash::MessageReceiver>,
}

impl Load {
    pub async fn start(url: &str) -> Self {
        let bob = register_client(url, "bob").await;
        let received = tokio::spawn(collect_messages(bob.open_inbox(Some(Cursor::START)).await));
        let record = Arc::<Mutex<SendRecord>>::default();
        let stop = Arc::<AtomicBool>::default();
        let (count, counted) = watch::channel(0);
        let count = Arc::new(count);
        let mut senders = Vec::new();
        for number in 0..4 {
            let name = format!("sender{number}");
            let client = register_client(url, &name).await;
            senders.push(tokio::spawn(send_messages(
                client,
                name,
                record.clone(),
                count.clone(),
                stop.clone(),
            )));
        }
        Self {
            bob,
            record,
            stop,
            counted,
            senders,
            received,
        }
    }

    /// Waits until more sends are acknowledged.
    pub async fn wait_for_progress(&mut self) {
        let goal = *self.counted.borrow() + SENDS_PER_STEP;
        wait_for_count(&mut self.counted, goal).await;
    }

    /// Checks that every send so far was acknowledged in the end, because another hub answers the retry.
    fn assert_all_acknowledged(&self) {
        let record = self.record.lock().unwrap();
        assert!(record.unknown.is_empty(), "{:?}", record.unknown);
    }

    /// Stops the senders; checks that every acknowledged message is stored once, and was received once and in order.
    pub async fn stop_and_check(self) {
        self.stop.store(true, Ordering::SeqCst);
        for sender in self.senders {
            sender.await.unwrap();
        }
        let history = fetch_all_texts(&self.bob).await;
        check_history(&self.record.lock().unwrap(), &history);
        let last = *history.last_key_value().unwrap().0;
        let stored: Vec<(u64, String)> = history.into_iter().collect();
        assert_eq!(read_until_seq(self.received, last).await, stored);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_loses_no_acknowledged_message() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let mut hubs = vec![
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
    let (front, url) = start_front(&hubs).await;
    let mut load = Load::start(&url).await;
    load.wait_for_progress().await;
    for turn in 0..2 {
        hubs[turn].process.send_signal("KILL");
        hubs[turn].process.await_exit();
        load.wait_for_progress().await;
        hubs[turn] = servers.hub(["a", "b"][turn], "127.0.0.1:0");
        front.turn_to(hubs.iter().map(hub_address).collect());
        load.wait_for_progress().await;
    }
    load.assert_all_acknowledged();
    load.stop_and_check().await;
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
    let (front, url) = start_front(&hubs).await;
    let mut load = Load::start(&url).await;
    for (turn, name) in names.into_iter().enumerate() {
        load.wait_for_progress().await;
        hubs[turn].process.send_signal("TERM");
        if name == "b" {
            // Killed in the middle of its shutdown.
            hubs[turn].process.send_signal("KILL");
        }
        let ended = hubs[turn].process.await_exit();
        assert!(
            name == "b" || ended == Some(0),
            "it stops cleanly: {ended:?}"
        );
        hubs[turn] = servers.hub(name, "127.0.0.1:0");
        front.turn_to(hubs.iter().map(hub_address).collect());
    }
    load.wait_for_progress().await;
    load.assert_all_acknowledged();
    load.stop_and_check().await;
}

fn advisory(handle: &str, text: &str, id: &str) -> String {
    let now = chorus_hub::Clock::system().now();
    json!({"frame": {"envelope_version": "1.0", "frame_id": id, "kind": "agent_advisory",
        "sender_handle": handle, "recipient_handle": handle, "created_at": now, "payload": {"advisory_text": text},
        "acted_by": handle, "drafted_with": "~cc-editor", "provenance_compute_location": "local-only",
        "provenance_method": ["x"], "provenance_context_check": "passed", "provenance_basis": "x"}})
    .to_string()
}

/// Sends an advisory to all sessions of a handle; returns the status, and the recipient count or the error code.
pub async fn send_frame(client: &HubClient, handle: &str, text: &str) -> (u16, Value) {
    send_frame_with_id(
        client,
        handle,
        text,
        &chorus_client::frame::random_uuid().to_string(),
    )
    .await
}

/// Sends an advisory with a given frame id.
pub async fn send_frame_with_id(
    client: &HubClient,
    handle: &str,
    text: &str,
    id: &str,
) -> (u16, Value) {
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

/// Waits until `condition` is true.
pub async fn eventually(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition().await {
        assert!(Instant::now() < deadline, "never: {description}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_messages_arrive_and_frames_are_refused_until_it_is_back() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
    let (_front, url) = start_front(&hubs).await;
    let mut load = Load::start(&url).await;
    let carol = register_client(&hubs[0].url, "carol").await;
    assert_eq!(send_frame(&carol, "~carol", "hello").await.0, 200);
    load.wait_for_progress().await;
    servers.stop_nats();
    let started_at = Instant::now();
    eventually("frames are refused", async || {
        send_frame(&carol, "~carol", "hello").await.0 == 503
    })
    .await;
    assert_eq!(
        send_frame(&carol, "~carol", "refused").await,
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
    while started_at.elapsed() < DOWNTIME {
        load.wait_for_progress().await;
    }
    servers.start_nats();
    eventually("frames are taken", async || {
        send_frame(&carol, "~carol", "hello").await.0 == 200
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
    load.wait_for_progress().await;
    load.stop_and_check().await;
}

/// An inbox or frame stream on one connection, without reconnecting.
pub struct RawStream {
    socket: TcpStream,
    received: String,
}

impl RawStream {
    pub fn open(hub: &Hub, key: &str) -> Self {
        Self::open_at(hub, key, "/agent/inbox")
    }

    pub fn open_at(hub: &Hub, key: &str, path: &str) -> Self {
        let mut socket = TcpStream::connect(hub_address(hub)).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut stream = Self {
            socket,
            received: String::new(),
        };
        stream.read_until("event: connected");
        stream
    }

    /// Reads until the stream contains this text; panics if the connection ends before.
    #[track_caller]
    pub fn read_until(&mut self, text: &str) {
        self.socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut buffer = [0; 4096];
        while !self.received.contains(text) {
            let count = match self.socket.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.unwrap_or_else(|error| {
                    panic!("{text} did not come: {error}: {}", self.received)
                }),
            };
            assert!(
                count > 0,
                "the stream ended before {text}: {}",
                self.received
            );
            self.received
                .push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }

    /// The texts of all messages and advisories so far, in order.
    pub fn received_texts(&mut self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        let _ = self.socket.read_to_end(&mut rest);
        self.socket.set_nonblocking(false).unwrap();
        self.received.push_str(&String::from_utf8_lossy(&rest));
        let texts = self
            .received
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
async fn without_the_database_sends_are_refused_and_streams_stay_open() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ];
    let (_front, url) = start_front(&hubs).await;
    let mut load = Load::start(&url).await;
    load.wait_for_progress().await;
    let (carol, key) = crate::crash::register_with_key(&hubs[0].url, "carol").await;
    let mut inboxes = [
        RawStream::open(&hubs[0], &key),
        RawStream::open(&hubs[1], &key),
    ];
    servers.stop_postgres();
    let started_at = Instant::now();
    let lost: Value = serde_json::from_str(&envelope("carol", "lost").to_json()).unwrap();
    let body = json!({"receiver_id": "carol@chorus", "envelope": lost});
    let mut refused = 0;
    eventually("the downtime is over", async || {
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
        started_at.elapsed() >= DOWNTIME
    })
    .await;
    assert!(refused > 3, "refusals come quickly");
    servers.start_postgres();
    load.wait_for_progress().await;
    carol
        .send_message("carol@chorus", &envelope("carol", "found"), 0)
        .await
        .unwrap();
    for inbox in &mut inboxes {
        inbox.read_until("found");
        assert_eq!(
            inbox.received_texts(),
            ["found"],
            "a refused message is never delivered"
        );
    }
    load.stop_and_check().await;
}
