//! The framing of streams: one HTTP chunk per event, also when many are written at once (R-100).

use crate::support::actors::{Agent, STEP_TIMEOUT};
use crate::support::hub::{Hub, eventually, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that shows the bytes of a stream as they are sent.
struct RawStream {
    socket: TcpStream,
    held: Vec<u8>,
}

impl RawStream {
    /// Sends the request; returns the response head too.
    async fn open(hub: &Hub, agent: &Agent, version: &str) -> (Self, String) {
        let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
        let key = &agent.key;
        let request = format!(
            "GET /agent/inbox {version}\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let held = Vec::new();
        let mut stream = Self { socket, held };
        let head = stream.take_until(b"\r\n\r\n").await;
        (stream, head.to_ascii_lowercase())
    }

    async fn take(&mut self, count: usize) -> Vec<u8> {
        while self.held.len() < count {
            let read = within(STEP_TIMEOUT, self.socket.read_buf(&mut self.held));
            let read = read.await.expect("bytes in time").unwrap();
            assert!(read > 0, "the stream ended inside a chunk");
        }
        self.held.drain(..count).collect()
    }

    async fn take_until(&mut self, end: &[u8]) -> String {
        let mut taken = Vec::new();
        while !taken.ends_with(end) {
            taken.extend(self.take(1).await);
        }
        String::from_utf8(taken).unwrap()
    }

    /// The next chunk; an empty one is the last.
    async fn next_chunk(&mut self) -> String {
        let size = self.take_until(b"\r\n").await;
        let size = usize::from_str_radix(size.trim_end(), 16).expect("the size of a chunk");
        let chunk = self.take(size).await;
        assert_eq!(self.take(2).await, b"\r\n");
        String::from_utf8(chunk).unwrap()
    }
}

story!(each_event_is_one_chunk_also_in_a_burst, |hub| async {
    // R-100, R-25, lesson 3: a client with a buffer of 64 000 characters takes what one chunk brings
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut stream, head) = RawStream::open(&hub, &bob, "HTTP/1.1").await;
    assert!(
        head.contains("\r\ntransfer-encoding: chunked\r\n"),
        "{head}"
    );
    assert!(!head.contains("content-length"), "{head}");
    let connected = stream.next_chunk().await;
    assert!(
        connected.starts_with("event: connected\nid: "),
        "{connected}"
    );
    // Sent before the first is read, so that many are written at once.
    let text = "x".repeat(9_900);
    let sends = (0..100).map(|_| alice.send(&bob.id, &text));
    for answer in futures_util::future::join_all(sends).await {
        assert!(matches!(answer.status, 200 | 202), "{answer:?}");
    }
    for _ in 0..100 {
        let event = stream.next_chunk().await;
        assert!(event.starts_with("event: message\nid: "), "{event}");
        assert!(event.ends_with("\n\n") && event.matches("\n\n").count() == 1);
        assert!(event.len() < 64_000);
    }
});

single_hub_story!(the_last_event_is_followed_by_the_end, |hub| async {
    // R-100: a reader can tell a stream that was closed from one that was cut
    let bob = hub.agent("bob").await;
    let (mut stream, _) = RawStream::open(&hub, &bob, "HTTP/1.1").await;
    stream.next_chunk().await;
    hub.stop().await;
    let closing = stream.next_chunk().await;
    assert!(closing.starts_with("event: closing\nretry: "), "{closing}");
    assert_eq!(stream.next_chunk().await, "");
});

sqlite_story!(a_reader_that_closes_its_side_has_left, |hub| async {
    // D-124: the end of its input is all that tells the hub of a reader that is gone
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut stream, _) = RawStream::open(&hub, &bob, "HTTP/1.1").await;
    stream.next_chunk().await;
    alice
        .send_expecting(&bob.id, "while there", "delivered_sse")
        .await;
    stream.socket.shutdown().await.unwrap();
    eventually("bob is offline", async || {
        let answer = alice.send(&bob.id, "while away").await;
        answer.json()["data"]["delivery"] == "queued"
    })
    .await;
});

story!(http_1_0_gets_the_events_without_chunks, |hub| async {
    // R-100: HTTP/1.0 has no chunks, and its body ends with the connection
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut stream, head) = RawStream::open(&hub, &bob, "HTTP/1.0").await;
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    let connected = stream.take_until(b"\n\n").await;
    assert!(
        connected.starts_with("event: connected\nid: "),
        "{connected}"
    );
    for text in ["one", "two"] {
        alice.send_expecting(&bob.id, text, "delivered_sse").await;
        let event = stream.take_until(b"\n\n").await;
        assert!(event.starts_with("event: message\nid: "), "{event}");
        assert!(
            event.contains(&format!(r#""original_text":"{text}""#)),
            "{event}"
        );
    }
});
