//! A minimal HTTP/1.1 connection, one request at a time: it costs so little that the measurement shows the hub.

use serde_json::Value;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub type BoxError = Box<dyn std::error::Error>;

pub struct HubConnection {
    socket: TcpStream,
    hub: String,
    key: String,
    buffer: Vec<u8>,
}

fn connection_error(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}

/// Where `delimiter` begins.
fn find_bytes(bytes: &[u8], delimiter: &[u8]) -> Option<usize> {
    bytes
        .windows(delimiter.len())
        .position(|window| window == delimiter)
}

impl HubConnection {
    /// Connects to the hub; `key` may be empty.
    pub async fn open(hub: &str, key: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(hub).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            hub: hub.to_owned(),
            key: key.to_owned(),
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    async fn write_request(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let key = if self.key.is_empty() {
            String::new()
        } else {
            format!("Authorization: Bearer {}\r\n", self.key)
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.hub,
            body.len()
        );
        self.socket
            .write_all(format!("{head}{body}").as_bytes())
            .await
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.socket.read_buf(&mut self.buffer).await? == 0 {
            return Err(connection_error("the hub closed the connection"));
        }
        Ok(())
    }

    /// Reads up to and including `delimiter`.
    async fn read_until(&mut self, delimiter: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = find_bytes(&self.buffer, delimiter) {
                return Ok(self.buffer.drain(..at + delimiter.len()).collect());
            }
            self.read_more().await?;
        }
    }

    async fn read_head(&mut self) -> io::Result<(u16, String)> {
        let head = String::from_utf8_lossy(&self.read_until(b"\r\n\r\n").await?).to_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((
            status.ok_or_else(|| connection_error("not an HTTP answer"))?,
            head,
        ))
    }

    /// Sends one request and returns the status and the body.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> io::Result<(u16, Vec<u8>)> {
        self.write_request(method, path, body).await?;
        let (status, head) = self.read_head().await?;
        let length = head.lines().find_map(|line| {
            line.strip_prefix("content-length: ")?
                .trim()
                .parse::<usize>()
                .ok()
        });
        let length = length.ok_or_else(|| connection_error("an answer without its length"))?;
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        Ok((status, self.buffer.drain(..length).collect()))
    }

    /// Sends one request that must succeed, and returns its JSON.
    pub async fn request_json(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Value, BoxError> {
        let (status, answer) = self.request(method, path, body).await?;
        if !(200..300).contains(&status) {
            return Err(format!(
                "{method} {path}: {status} {}",
                String::from_utf8_lossy(&answer)
            )
            .into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Opens the agent's inbox on this connection; the stream is live when this returns.
    pub async fn open_inbox(mut self) -> io::Result<Self> {
        self.write_request("GET", "/agent/inbox", "").await?;
        let (status, _) = self.read_head().await?;
        if status != 200 {
            return Err(connection_error("the inbox did not open"));
        }
        while self.next_event().await?.0 != "connected" {}
        Ok(self)
    }

    /// The next next_event: its name and its data.
    pub async fn next_event(&mut self) -> io::Result<(String, String)> {
        let block = self.read_until(b"\n\n").await?;
        let text = String::from_utf8_lossy(&block);
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
                .to_owned()
        };
        Ok((field("event: "), field("data: ")))
    }
}

/// Registers an agent of the market and returns its key.
pub async fn register_agent(
    line: &mut HubConnection,
    id: &str,
    skills: &Value,
) -> Result<String, BoxError> {
    let body = serde_json::json!({"agent_id": id, "agent_name": id, "skills": skills}).to_string();
    let registered = line.request_json("POST", "/register", &body).await?;
    Ok(registered["api_key"]
        .as_str()
        .ok_or("a registration without a key")?
        .to_owned())
}
