//! A loopback test server that sends one scripted answer per connection, byte for byte, and records its requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The answer on one connection: pieces, each written and flushed separately.
#[derive(Clone, Debug)]
pub struct Answer {
    pub pieces: Vec<Vec<u8>>,
    /// Sends nothing more but keeps the connection open, like a hub that hangs.
    pub hang: bool,
}

impl Answer {
    pub fn json(status: u16, body: &str) -> Self {
        Self::head(status, "content-type: application/json\r\n", body)
    }

    pub fn head(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        Self {
            pieces: vec![text.into_bytes()],
            hang: false,
        }
    }

    /// An event stream, split into pieces of `size` bytes.
    pub fn events(body: &str, size: usize) -> Self {
        let head =
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n"
                .to_vec();
        let mut pieces = vec![head];
        pieces.extend(body.as_bytes().chunks(size.max(1)).map(<[u8]>::to_vec));
        Self {
            pieces,
            hang: false,
        }
    }

    pub fn hanging(self) -> Self {
        Self { hang: true, ..self }
    }
}

pub struct ScriptedServer {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl ScriptedServer {
    /// Connection number n gets the n-th answer; after the last one the listener is closed.
    pub async fn start(script: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        let task = tokio::spawn(async move {
            let mut hanging_sockets = Vec::new();
            for answer in script {
                let Ok((mut socket, _)) = listener.accept().await else {
                    return;
                };
                let request = read_request(&mut socket).await;
                recorded.lock().unwrap().push(request);
                for piece in &answer.pieces {
                    if socket.write_all(piece).await.is_err() {
                        break;
                    }
                    let _ = socket.flush().await;
                    tokio::task::yield_now().await;
                }
                if answer.hang {
                    hanging_sockets.push(socket);
                }
            }
        });
        Self {
            url,
            requests,
            task,
        }
    }

    /// The recorded requests, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read_request(socket: &mut tokio::net::TcpStream) -> String {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")
                    .map(str::to_owned)
            });
            if body.len() >= length.and_then(|l| l.parse().ok()).unwrap_or(0) {
                return text;
            }
        }
        match tokio::time::timeout(Duration::from_secs(5), socket.read(&mut buffer)).await {
            Ok(Ok(n)) if n > 0 => received.extend_from_slice(&buffer[..n]),
            Ok(Ok(_) | Err(_)) | Err(_) => return text,
        }
    }
}

/// The value of a header in a recorded request.
pub fn header(request: &str, name: &str) -> Option<String> {
    let head = request.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name)
            .then(|| value.trim().to_owned())
    })
}
