//! Stalled readers: not counted as deliveries, cut off in time, and replayed when they return.

use crate::support::actors::STEP_TIMEOUT;
use crate::support::hub::Hub;
use std::collections::HashSet;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// An open inbox on a socket with a small buffer that is not read after the response head.
async fn unread(hub: &Hub, key: &str) -> TcpStream {
    ask_and_stop_reading(hub, "/agent/inbox", key).await
}

async fn ask_and_stop_reading(hub: &Hub, path: &str, key: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(hub.addr()).await.unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 1024];
    let length = stream.read(&mut head).await.unwrap();
    assert!(
        head[..length].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head[..length])
    );
    stream
}

story!(a_stalled_reader_is_not_a_delivery, |hub| async {
    // R-22; failure 11: no 1 500 messages "delivered" to a socket that is not read
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let socket = unread(&hub, &bob.key).await;
    let text = "🎶".repeat(10_000);
    let (started, mut traces) = (Instant::now(), Vec::new());
    loop {
        let answer = alice.send(&bob.id, &text).await;
        let data = answer.json()["data"].clone();
        traces.push(data["trace_id"].as_str().unwrap().to_owned());
        if answer.status == 202 {
            assert_eq!(data["delivery"], "queued");
            break;
        }
        assert!(
            started.elapsed() < STEP_TIMEOUT,
            "{} messages went to a socket that is not read",
            traces.len()
        );
    }
    assert_eq!(
        alice
            .delivery_status(&traces.last().unwrap().as_str().into())
            .await["status"],
        "queued"
    );
    drop(socket);
    let mut back = bob.inbox_after("0").await;
    let mut seen = HashSet::new();
    for trace in &traces {
        let event = back.next("message").await;
        assert_eq!(
            event.data["trace_id"],
            trace.as_str(),
            "in order and without a gap"
        );
        assert!(seen.insert(event.cursor()), "once each");
    }
});

story!(a_stalled_reader_delays_no_other, |hub| async {
    // failure 11: another inbox of the same agent goes on hearing
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let _socket = unread(&hub, &bob.key).await;
    let mut awake = bob.inbox().await;
    let text = "🎶".repeat(10_000);
    for _ in 0..40 {
        alice.send_expecting(&bob.id, &text, "delivered_sse").await;
        assert_eq!(awake.next("message").await.message_text().len(), text.len());
    }
});

/// Invariant 6: a reader that takes nothing is disconnected. The wait is the product's own ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_is_cut_off() {
    let hub = Hub::fresh().await;
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let _socket = unread(&hub, &bob.key).await;
    let text = "🎶".repeat(10_000);
    for _ in 0..60 {
        alice.send(&bob.id, &text).await;
    }
    crate::support::hub::eventually("the reader is cut off", || async {
        hub.anonymous().get("/health").await.data(200)["inbox_connections"] == 0
    })
    .await;
}

sqlite_story!(
    a_history_that_is_not_taken_counts_among_the_large_answers,
    with(|set| set.hub.memory.large_answers = 1024 * 1024),
    |hub| async {
        // more than the kernel buffers for a client that stops reading
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let text = "🎶".repeat(10_000);
        for _ in 0..220 {
            alice.send_expecting(&bob.id, &text, "queued").await;
        }
        let socket = ask_and_stop_reading(&hub, "/agent/messages", &bob.key).await;
        bob.get("/agent/messages")
            .await
            .refused(503, "ERR_UNAVAILABLE");
        drop(socket);
        crate::support::hub::eventually("its memory is free again", || async {
            bob.get("/agent/messages").await.status == 200
        })
        .await;
    }
);
