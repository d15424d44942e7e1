//! Signals to a hub with a webhook in flight: the first waits for it, the second ends the process at once.

use crate::actors::{Hub, TIMEOUT};
use crate::crash::{envelope, register_client};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A hub with an agent whose endpoint has a message and has not answered it.
struct WaitingHub {
    hub: Hub,
    endpoint: TcpStream,
    sending: tokio::task::JoinHandle<Option<String>>,
    _folder: tempfile::TempDir,
}

impl WaitingHub {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint_url = format!("http://{}/receive", listener.local_addr().unwrap());
        let hub = Hub::start(folder.path(), &["--allow-private-endpoints"]);
        let alice = register_client(&hub.url, "alice").await;
        let anonymous = HubClient::new(&hub.url, None).unwrap();
        let registration = json!({"agent_id": "carol@chorus", "endpoint": endpoint_url, "agent_card":
            {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]}});
        let call = ApiCall::post("/register", registration.to_string());
        assert_eq!(anonymous.send_call(call).await.unwrap().status, 201);
        let sending = tokio::spawn(async move {
            let body = json!({"receiver_id": "carol@chorus", "envelope": envelope("alice", "x")});
            let call = ApiCall::post("/messages", body.to_string());
            let answer = alice.send_call(call).await.ok()?;
            Some(String::from_utf8_lossy(&answer.body).into_owned())
        });
        let accepting = tokio::task::spawn_blocking(move || listener.accept().unwrap().0);
        let mut endpoint = tokio::time::timeout(TIMEOUT, accepting)
            .await
            .unwrap()
            .unwrap();
        let mut head = [0; 16];
        endpoint.read_exact(&mut head).unwrap();
        Self {
            hub,
            endpoint,
            sending,
            _folder: folder,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_hub_waits_for_the_answer_of_an_endpoint() {
    let mut waiting = WaitingHub::start().await;
    waiting.hub.process.send_signal("TERM");
    // Longer than other connections have to end, and this one is not cut.
    let longer = Some(Duration::from_secs(5));
    waiting.endpoint.set_read_timeout(longer).unwrap();
    while let Ok(length) = waiting.endpoint.read(&mut [0; 4_096]) {
        assert_ne!(length, 0, "the hub cut the connection");
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{\"status\":\"ok\"}";
    waiting.endpoint.write_all(answer.as_bytes()).unwrap();
    let answer = waiting
        .sending
        .await
        .unwrap()
        .expect("the sender is answered");
    assert!(answer.contains(r#""delivery":"delivered""#), "{answer}");
    assert_eq!(waiting.hub.process.await_exit(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_a_hub_at_once() {
    let mut waiting = WaitingHub::start().await;
    waiting.hub.process.send_signal("TERM");
    // The first is at work: the hub takes no more connections.
    let address = waiting.hub.url.strip_prefix("http://").unwrap();
    let signalled = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(signalled.elapsed() < TIMEOUT, "never: it stops");
    }
    let signalled = Instant::now();
    waiting.hub.process.send_signal("TERM");
    assert_eq!(waiting.hub.process.await_exit(), Some(130));
    assert!(signalled.elapsed() < Duration::from_secs(3));
    drop(waiting.endpoint);
}
