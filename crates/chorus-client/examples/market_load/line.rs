//! A connection to the hub that costs next to nothing, so that what is measured is the hub: HTTP/1.1, one request at a time.

use serde_json::Value;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub type Failure = Box<dyn std::error::Error>;

pub struct Line {
    socket: TcpStream,
    hub: String,
    key: String,
    read: Vec<u8>,
}

fn broken(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

/// Where `mark` begins.
fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

impl Line {
    /// `key` may be empty.
    pub async fn open(hub: &str, key: &str) -> io::Result<Self> {
        let socket = TcpStream::connect(hub).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            hub: hub.to_owned(),
            key: key.to_owned(),
            read: Vec::with_capacity(16 * 1024),
        })
    }

    async fn write(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let key = if self.key.is_empty() {
            String::new()
        } else {
            format!("Authorization: Bearer {}\r\n", self.key)
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Content-Length: {}\r\n\r\n",
            self.hub,
            body.len()
        );
        self.socket
            .write_all(format!("{head}{body}").as_bytes())
            .await
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.socket.read_buf(&mut self.read).await? == 0 {
            return Err(broken("the hub closed the connection"));
        }
        Ok(())
    }

    /// Everything up to and with `mark`.
    async fn until(&mut self, mark: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.read, mark) {
                return Ok(self.read.drain(..at + mark.len()).collect());
            }
            self.more().await?;
        }
    }

    async fn head(&mut self) -> io::Result<(u16, String)> {
        let head = String::from_utf8_lossy(&self.until(b"\r\n\r\n").await?).to_lowercase();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((status.ok_or_else(|| broken("not an HTTP answer"))?, head))
    }

    /// One exchange: the status and the body.
    pub async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> io::Result<(u16, Vec<u8>)> {
        self.write(method, path, body).await?;
        let (status, head) = self.head().await?;
        let length = head.lines().find_map(|line| {
            line.strip_prefix("content-length: ")?
                .trim()
                .parse::<usize>()
                .ok()
        });
        let length = length.ok_or_else(|| broken("an answer without its length"))?;
        while self.read.len() < length {
            self.more().await?;
        }
        Ok((status, self.read.drain(..length).collect()))
    }

    /// An exchange that has to go well.
    pub async fn asked(&mut self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        let (status, answer) = self.ask(method, path, body).await?;
        if !(200..300).contains(&status) {
            return Err(format!(
                "{method} {path}: {status} {}",
                String::from_utf8_lossy(&answer)
            )
            .into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Turns the connection into the agent's inbox; it is live when this returns.
    pub async fn listen(mut self) -> io::Result<Self> {
        self.write("GET", "/agent/inbox", "").await?;
        let (status, _) = self.head().await?;
        if status != 200 {
            return Err(broken("the inbox did not open"));
        }
        while self.event().await?.0 != "connected" {}
        Ok(self)
    }

    /// The next event: its name and its data.
    pub async fn event(&mut self) -> io::Result<(String, String)> {
        let block = self.until(b"\n\n").await?;
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

/// Registers an agent of the market; its key.
pub async fn register(line: &mut Line, id: &str, skills: &Value) -> Result<String, Failure> {
    let body = serde_json::json!({"agent_id": id, "agent_name": id, "skills": skills}).to_string();
    let registered = line.asked("POST", "/register", &body).await?;
    Ok(registered["api_key"]
        .as_str()
        .ok_or("a registration without a key")?
        .to_owned())
}
