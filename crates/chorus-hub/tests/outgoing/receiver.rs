//! A receiver that answers with exactly the bytes of its test, and a table of names for the
//! resolver.

use chorus_hub::delivery::outgoing::capacity_shares::DeliveryOwner;
use chorus_hub::delivery::outgoing::name_resolver::{LookupFuture, NameResolver};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{io, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// Listens on loopback until it is dropped.
pub struct Receiver {
    pub address: SocketAddr,
    requests: watch::Receiver<Vec<String>>,
    listening: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Receiver {
    /// Calls `serve` with the connection after each complete request.
    pub async fn start<F, S>(ip: &str, serve: F) -> Self
    where
        F: Fn(TcpStream) -> S + Clone + Send + Sync + 'static,
        S: Future<Output = Option<TcpStream>> + Send,
    {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        Self::on_listener(listener, serve)
    }

    pub fn on_listener<F, S>(listener: TcpListener, serve: F) -> Self
    where
        F: Fn(TcpStream) -> S + Clone + Send + Sync + 'static,
        S: Future<Output = Option<TcpStream>> + Send,
    {
        let address = listener.local_addr().unwrap();
        let (request_sender, requests) = watch::channel(Vec::new());
        let request_sender = Arc::new(request_sender);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serve = serve.clone();
                let request_sender = request_sender.clone();
                tokio::spawn(async move {
                    let mut open = Some(stream);
                    while let Some(mut stream) = open.take() {
                        let Some(request) = read_request(&mut stream).await else {
                            return;
                        };
                        request_sender.send_modify(|requests| requests.push(request));
                        open = serve(stream).await;
                    }
                });
            }
        });
        Self {
            address,
            requests,
            listening,
        }
    }

    /// Writes these bytes and closes.
    pub async fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start("127.0.0.1", move |stream| {
            write_answer(stream, bytes.clone(), false)
        })
        .await
    }

    /// Writes these bytes and then holds the connection open without writing more.
    pub async fn stalling_after(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start("127.0.0.1", move |stream| {
            write_answer(stream, bytes.clone(), true)
        })
        .await
    }

    /// Writes these bytes, then `piece` again and again as long as the client reads.
    pub async fn trickling_after(
        bytes: impl Into<Vec<u8>>,
        interval: Duration,
        piece: &'static str,
    ) -> Self {
        let bytes = Arc::new(bytes.into());
        let serve = move |mut stream: TcpStream| {
            let bytes = bytes.clone();
            async move {
                let mut pace = tokio::time::interval(interval);
                let mut writing = stream.write_all(&bytes).await;
                while writing.is_ok() {
                    pace.tick().await;
                    writing = stream.write_all(piece.as_bytes()).await;
                }
                None
            }
        };
        Self::start("127.0.0.1", serve).await
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.borrow().clone()
    }

    /// Returns when this many requests have arrived.
    pub async fn wait_for_requests(&self, count: usize) {
        let mut requests = self.requests.clone();
        let arrival = requests.wait_for(|requests| requests.len() >= count);
        timeout(Duration::from_secs(10), arrival)
            .await
            .expect("the request arrives")
            .unwrap();
    }
}

async fn write_answer(
    mut stream: TcpStream,
    bytes: Arc<Vec<u8>>,
    hold_open: bool,
) -> Option<TcpStream> {
    let _ = stream.write_all(&bytes).await;
    let _ = if hold_open {
        stream.read(&mut [0]).await
    } else {
        Ok(0)
    };
    None
}

/// Reads one request, head and body, as text.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if let Some(head_len) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8(bytes[..head_len].to_vec())
                .unwrap()
                .to_ascii_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if bytes.len() >= head_len + 4 + length.map_or(0, |n| n.parse().unwrap()) {
                return String::from_utf8(bytes).ok();
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
}

/// A complete HTTP answer; `extra` are whole header lines.
pub fn http_answer(status: &str, extra: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{extra}\r\n{body}",
        body.len()
    )
}

/// Answers the nth look-up with the nth row, and from then on with the last row. An empty row is a
/// name that does not resolve.
pub struct NameTable {
    rows: Mutex<Vec<Vec<IpAddr>>>,
    lookup_count: AtomicUsize,
}

impl NameTable {
    pub fn from_rows(rows: &[&[&str]]) -> Arc<Self> {
        let rows = rows
            .iter()
            .map(|row| row.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        Arc::new(Self {
            rows: Mutex::new(rows),
            lookup_count: AtomicUsize::new(0),
        })
    }

    pub fn lookup_count(&self) -> usize {
        self.lookup_count.load(Ordering::SeqCst)
    }
}

impl NameResolver for NameTable {
    fn look_up_name(&self, _name: &str, _owner: DeliveryOwner) -> LookupFuture {
        self.lookup_count.fetch_add(1, Ordering::SeqCst);
        let mut rows = self.rows.lock().unwrap();
        let row = if rows.len() > 1 {
            rows.remove(0)
        } else {
            rows[0].clone()
        };
        Box::pin(async move {
            if row.is_empty() {
                Err(io::ErrorKind::NotFound.into())
            } else {
                Ok(row)
            }
        })
    }
}
