//! A receiver that answers byte for byte what its test wants, and a table of names.

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
    pub at: SocketAddr,
    heard: watch::Receiver<Vec<String>>,
    listening: tokio::task::JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Receiver {
    /// `serve` gets the connection after each request that was read whole from it.
    pub async fn start<F, S>(ip: &str, serve: F) -> Self
    where
        F: Fn(TcpStream) -> S + Clone + Send + Sync + 'static,
        S: Future<Output = Option<TcpStream>> + Send,
    {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        Self::on(listener, serve)
    }

    pub fn on<F, S>(listener: TcpListener, serve: F) -> Self
    where
        F: Fn(TcpStream) -> S + Clone + Send + Sync + 'static,
        S: Future<Output = Option<TcpStream>> + Send,
    {
        let at = listener.local_addr().unwrap();
        let (tell, heard) = watch::channel(Vec::new());
        let tell = Arc::new(tell);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serve, tell) = (serve.clone(), tell.clone());
                tokio::spawn(async move {
                    let mut open = Some(stream);
                    while let Some(mut stream) = open.take() {
                        let Some(request) = request(&mut stream).await else {
                            return;
                        };
                        tell.send_modify(|heard| heard.push(request));
                        open = serve(stream).await;
                    }
                });
            }
        });
        Self {
            at,
            heard,
            listening,
        }
    }

    /// Writes these bytes and closes.
    pub async fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start("127.0.0.1", move |stream| say(stream, bytes.clone(), false)).await
    }

    /// Writes these bytes and then holds the connection open without a further word.
    pub async fn stalling_after(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = Arc::new(bytes.into());
        Self::start("127.0.0.1", move |stream| say(stream, bytes.clone(), true)).await
    }

    /// Writes these bytes, then `drop` after `drop` for as long as anybody takes them.
    pub async fn trickling_after(
        bytes: impl Into<Vec<u8>>,
        every: Duration,
        drop: &'static str,
    ) -> Self {
        let bytes = Arc::new(bytes.into());
        let serve = move |mut stream: TcpStream| {
            let bytes = bytes.clone();
            async move {
                let mut pace = tokio::time::interval(every);
                let mut writing = stream.write_all(&bytes).await;
                while writing.is_ok() {
                    pace.tick().await;
                    writing = stream.write_all(drop.as_bytes()).await;
                }
                None
            }
        };
        Self::start("127.0.0.1", serve).await
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.at)
    }

    pub fn heard(&self) -> Vec<String> {
        self.heard.borrow().clone()
    }

    /// Returns when this many requests have come.
    pub async fn has_heard(&self, requests: usize) {
        let mut heard = self.heard.clone();
        let come = heard.wait_for(|heard| heard.len() >= requests);
        timeout(Duration::from_secs(10), come)
            .await
            .expect("the request comes")
            .unwrap();
    }
}

async fn say(mut stream: TcpStream, bytes: Arc<Vec<u8>>, hold: bool) -> Option<TcpStream> {
    let _ = stream.write_all(&bytes).await;
    let _ = if hold {
        stream.read(&mut [0]).await
    } else {
        Ok(0)
    };
    None
}

/// One request, head and body, as text.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        if let Some(head) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8(read[..head].to_vec())
                .unwrap()
                .to_ascii_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if read.len() >= head + 4 + length.map_or(0, |n| n.parse().unwrap()) {
                return String::from_utf8(read).ok();
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(count) if count > 0 => read.extend_from_slice(&chunk[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
}

/// An ordinary answer; `extra` are whole header lines.
pub fn http(status: &str, extra: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{extra}\r\n{body}",
        body.len()
    )
}

/// Answers the nth look-up with the nth row, and the last one from then on. An empty row is a name that does not resolve.
pub struct Table {
    rows: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Table {
    pub fn of(rows: &[&[&str]]) -> Arc<Self> {
        let rows = rows
            .iter()
            .map(|row| row.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        Arc::new(Self {
            rows: Mutex::new(rows),
            asked: AtomicUsize::new(0),
        })
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl NameResolver for Table {
    fn look_up_name(&self, _name: &str) -> LookupFuture {
        self.asked.fetch_add(1, Ordering::SeqCst);
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
