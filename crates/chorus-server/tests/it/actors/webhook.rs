//! A receiver's endpoint on loopback that does what its script says, good or bad.

use super::PATIENCE;
use crate::hub::within;
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
    /// Nothing until the story says `release`, then these bytes.
    Held(Vec<u8>),
    /// A head and then one byte at a time, for ever.
    Dribble,
    /// An event stream that goes on until the story says `release`.
    Talks,
    /// These pieces, each in a write of its own.
    Pieces(Vec<Vec<u8>>),
}

impl Reply {
    pub fn json(status: u16, body: &str) -> Self {
        Self::typed(status, "application/json", body)
    }

    pub fn typed(status: u16, kind: &str, body: &str) -> Self {
        Reply::Bytes(whole(status, &format!("content-type: {kind}\r\n"), body))
    }

    pub fn ok() -> Self {
        Self::json(200, r#"{"status":"ok"}"#)
    }

    pub fn held_ok() -> Self {
        Reply::Held(whole(
            200,
            "content-type: application/json\r\n",
            r#"{"status":"ok"}"#,
        ))
    }

    pub fn redirect(to: &str) -> Self {
        Reply::Bytes(whole(307, &format!("location: {to}\r\n"), ""))
    }

    pub fn talks() -> Self {
        Reply::Talks
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

fn whole(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Scripted\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into()
}

/// One request as the endpoint got it.
#[derive(Debug, Clone)]
pub struct Heard {
    pub head: String,
    pub text: String,
}

impl Heard {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("a JSON request")
    }
}

pub struct Webhook {
    addr: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
    told: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Webhook {
    /// Answers every request alike.
    pub async fn that(reply: Reply) -> Self {
        Self::script(move |_| reply.clone()).await
    }

    /// Answers request number `n` (from 0) with `script(n)`.
    pub async fn script(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (hear, heard) = mpsc::unbounded_channel();
        let told = Arc::new(Notify::new());
        let notify = told.clone();
        let task = tokio::spawn(async move {
            let mut turn = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let (reply, hear, told) = (script(turn), hear.clone(), notify.clone());
                turn += 1;
                tokio::spawn(async move {
                    // A caller that hangs up early is part of some stories.
                    let _ = serve(socket, reply, &hear, &told).await;
                });
            }
        });
        Self {
            addr,
            heard,
            told,
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
    pub async fn hears(&mut self) -> Heard {
        within(PATIENCE, self.heard.recv())
            .await
            .expect("a request in time")
            .expect("a request")
    }

    /// Whether nothing has come that was not yet taken.
    pub fn heard_nothing(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }

    /// Lets one held reply go.
    pub fn release(&self) {
        self.told.notify_one();
    }
}

async fn serve(
    mut socket: TcpStream,
    reply: Reply,
    hear: &mpsc::UnboundedSender<Heard>,
    told: &Notify,
) -> std::io::Result<()> {
    let heard = read_request(&mut socket).await?;
    let _ = hear.send(heard);
    match reply {
        Reply::Bytes(bytes) => socket.write_all(&bytes).await?,
        Reply::Held(bytes) => {
            told.notified().await;
            socket.write_all(&bytes).await?;
        }
        Reply::Dribble => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n")
                .await?;
            let mut beat = tokio::time::interval(std::time::Duration::from_millis(20));
            loop {
                beat.tick().await;
                socket.write_all(b" ").await?;
            }
        }
        Reply::Talks => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await?;
            let mut beat = tokio::time::interval(std::time::Duration::from_millis(50));
            let released = told.notified();
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

async fn read_request(socket: &mut TcpStream) -> std::io::Result<Heard> {
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
                return Ok(Heard { head, text });
            }
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}
