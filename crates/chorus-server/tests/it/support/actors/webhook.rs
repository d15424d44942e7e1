//! An endpoint on loopback that answers each request as its script says.

use super::STEP_TIMEOUT;
use crate::support::hub::within;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// What the endpoint does with a request.
#[derive(Clone)]
pub enum Reply {
    /// These bytes, then the connection is closed.
    Bytes(Vec<u8>),
    /// Nothing until the story calls `release`, then these bytes.
    Held(Vec<u8>),
    /// A head and then one byte at a time, without end.
    ByteByByte,
    /// An event stream that goes on until the story calls `release`.
    EventsUntilReleased,
    /// These pieces, each in a write of its own.
    Pieces(Vec<Vec<u8>>),
}

impl Reply {
    pub fn json(status: u16, body: &str) -> Self {
        Self::typed(status, "application/json", body)
    }

    pub fn typed(status: u16, kind: &str, body: &str) -> Self {
        Reply::Bytes(write_response(
            status,
            &format!("content-type: {kind}\r\n"),
            body,
        ))
    }

    pub fn ok() -> Self {
        Self::json(200, r#"{"status":"ok"}"#)
    }

    pub fn held_ok() -> Self {
        Reply::Held(write_response(
            200,
            "content-type: application/json\r\n",
            r#"{"status":"ok"}"#,
        ))
    }

    /// Nothing until the story calls `release`, then this reply.
    pub fn held(reply: Self) -> Self {
        match reply {
            Reply::Bytes(bytes) => Reply::Held(bytes),
            Reply::Held(_) | Reply::ByteByByte | Reply::EventsUntilReleased | Reply::Pieces(_) => {
                reply
            }
        }
    }

    pub fn redirect(to: &str) -> Self {
        Reply::Bytes(write_response(307, &format!("location: {to}\r\n"), ""))
    }

    pub fn events_until_released() -> Self {
        Reply::EventsUntilReleased
    }

    /// An event stream that ends when `pieces` do.
    pub fn events(pieces: &[&[u8]]) -> Self {
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Reply::Pieces(
            std::iter::once(head.as_slice())
                .chain(pieces.iter().copied())
                .map(<[u8]>::to_vec)
                .collect(),
        )
    }
}

fn write_response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Scripted\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into()
}

/// One request as the endpoint received it.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub head: String,
    pub text: String,
}

impl ReceivedRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a JSON request")
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

pub struct Webhook {
    addr: SocketAddr,
    received: mpsc::UnboundedReceiver<ReceivedRequest>,
    released: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Webhook {
    /// Answers every request with the same reply.
    pub async fn replying(reply: Reply) -> Self {
        Self::script(move |_| reply.clone()).await
    }

    /// Answers request number `n` (from 0) with `script(n)`.
    pub async fn script(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (requests, received) = mpsc::unbounded_channel();
        let released = Arc::new(Notify::new());
        let notify = released.clone();
        let task = tokio::spawn(async move {
            let mut turn = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let (reply, requests, released) = (script(turn), requests.clone(), notify.clone());
                turn += 1;
                tokio::spawn(async move {
                    // Some stories close the connection early.
                    let _ = serve(socket, reply, &requests, &released).await;
                });
            }
        });
        Self {
            addr,
            received,
            released,
            task,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/receive", self.addr)
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// The next request.
    pub async fn next_request(&mut self) -> ReceivedRequest {
        within(STEP_TIMEOUT, self.received.recv())
            .await
            .expect("a request in time")
            .expect("a request")
    }

    /// Whether no request is waiting to be read by the story.
    pub fn received_nothing(&mut self) -> bool {
        self.received.try_recv().is_err()
    }

    /// Sends one held reply.
    pub fn release(&self) {
        self.released.notify_one();
    }
}

async fn serve(
    mut socket: TcpStream,
    reply: Reply,
    requests: &mpsc::UnboundedSender<ReceivedRequest>,
    released: &Notify,
) -> std::io::Result<()> {
    let received = read_request(&mut socket).await?;
    let _ = requests.send(received);
    match reply {
        Reply::Bytes(bytes) => socket.write_all(&bytes).await?,
        Reply::Held(bytes) => {
            released.notified().await;
            socket.write_all(&bytes).await?;
        }
        Reply::ByteByByte => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n")
                .await?;
            let mut beat = tokio::time::interval(std::time::Duration::from_millis(20));
            loop {
                beat.tick().await;
                socket.write_all(b" ").await?;
            }
        }
        Reply::EventsUntilReleased => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await?;
            let mut beat = tokio::time::interval(std::time::Duration::from_millis(50));
            let released = released.notified();
            tokio::pin!(released);
            loop {
                tokio::select! {
                    () = &mut released => break,
                    _ = beat.tick() => socket.write_all(b"event: chunk\ndata: {\"text\":\"and \"}\n\n").await?,
                }
            }
            socket
                .write_all(b"event: done\ndata: {\"full_text\":\"all\",\"envelope\":null}\n\n")
                .await?;
        }
        Reply::Pieces(pieces) => {
            socket.set_nodelay(true)?;
            for piece in pieces {
                socket.write_all(&piece).await?;
                socket.flush().await?;
                tokio::task::yield_now().await;
            }
        }
    }
    socket.shutdown().await
}

async fn read_request(socket: &mut TcpStream) -> std::io::Result<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .map_or(0, |n| n.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let text =
                    String::from_utf8(bytes[end + 4..end + 4 + length].to_vec()).expect("UTF-8");
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                return Ok(ReceivedRequest { head, text });
            }
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
