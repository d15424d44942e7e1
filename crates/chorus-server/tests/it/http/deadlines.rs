//! Deadlines in real time: idle streams get keepalives, slow clients are disconnected.

use crate::support::hub::{Hub, within};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// a comment at least every 20 seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_stream_hears_a_keepalive() {
    let hub = Hub::fresh().await;
    let bob = hub.agent("bob").await;
    let mut inbox = bob.inbox().await;
    let chunk = within(Duration::from_secs(20), inbox.chunk())
        .await
        .flatten()
        .expect("a keepalive in time");
    assert!(
        chunk.starts_with(b":") && chunk.ends_with(b"\n\n"),
        "{}",
        String::from_utf8_lossy(&chunk)
    );
}

/// a request that is half sent ends after 30 seconds, in its head or in its body, and others never wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_sent_request_is_let_go() {
    let hub = Hub::fresh().await;
    let halves: [&[u8]; 2] = [
        b"POST /register HTTP/1.1\r\nhost: localhost\r\nx-half: ",
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"agent_id\":",
    ];
    let mut waiting = Vec::new();
    for half in halves {
        let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
        socket.write_all(half).await.unwrap();
        waiting.push(tokio::spawn(async move {
            let mut answer = Vec::new();
            within(Duration::from_secs(36), socket.read_to_end(&mut answer))
                .await
                .expect("let go in time")
                .ok();
            String::from_utf8_lossy(&answer).into_owned()
        }));
    }
    hub.anonymous().get("/health").await.data(200);
    for answer in waiting {
        let answer = answer.await.unwrap();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
            "{answer}"
        );
    }
}
