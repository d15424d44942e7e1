//! One run of the script: sends each request on its own connection and records every byte of the response.

use super::placeholders::Placeholders;
use crate::support::actors::STEP_TIMEOUT;
use crate::support::hub::{Hub, within};
use serde_json::Value;
use std::fmt::Write;
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One request with its response, or one received event.
pub struct Entry {
    pub title: String,
    pub text: String,
}

pub struct Transcript {
    pub hub: Hub,
    pub entries: Vec<Entry>,
    pub placeholders: Placeholders,
    /// Method, path and status of every request.
    pub requests: Vec<(String, String, u16)>,
}

/// A request as it goes on the wire.
#[derive(Clone)]
pub struct RawRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

pub fn raw_request(method: &str, path: &str) -> RawRequest {
    RawRequest {
        method: method.into(),
        path: path.into(),
        headers: Vec::new(),
        body: None,
    }
}

impl RawRequest {
    /// `""` sends no key.
    pub fn key(self, key: &str) -> Self {
        if key.is_empty() {
            self
        } else {
            self.header("authorization", &format!("Bearer {key}"))
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .bytes(body.to_string())
    }

    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    fn encode(&self, host: &str, number: usize) -> Vec<u8> {
        let mut out = format!(
            "{} {} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n",
            self.method, self.path
        );
        let named = self.headers.iter().any(|(name, _)| name == "x-request-id");
        if !named {
            write!(out, "x-request-id: asked-{number}\r\n").unwrap();
        }
        for (name, value) in self
            .headers
            .iter()
            .filter(|(name, value)| name != "x-request-id" || !value.is_empty())
        {
            write!(out, "{name}: {value}\r\n").unwrap();
        }
        if let Some(body) = &self.body {
            write!(out, "content-length: {}\r\n", body.len()).unwrap();
        }
        let mut out = (out + "\r\n").into_bytes();
        out.extend(self.body.iter().flatten());
        out
    }
}

/// The response.
pub struct RawResponse {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl RawResponse {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|fault| panic!("{fault}: {}", self.text))
    }

    /// The text at a place of the body.
    #[track_caller]
    pub fn text_at(&self, place: &str) -> String {
        let body = self.json();
        let found = body
            .pointer(place)
            .unwrap_or_else(|| panic!("no {place} in {body}"));
        found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned)
    }

    /// The same answer, which must have this status: what follows in the script needs it.
    #[track_caller]
    pub fn expect_status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Transcript {
    pub fn new(hub: Hub) -> Self {
        let mut placeholders = Placeholders::default();
        placeholders.assign(&hub.addr().to_string(), "the-hub");
        Self {
            hub,
            entries: Vec::new(),
            placeholders,
            requests: Vec::new(),
        }
    }

    /// Sends the request and records the response.
    pub async fn record(&mut self, ask: RawRequest) -> RawResponse {
        let response = self.exchange(&ask).await;
        self.add_entry(
            &format!("{} {}", ask.method, ask.path),
            &format!("{}\n\n{}", response.head, response.text),
        );
        response
    }

    /// The same, recording only the head.
    pub async fn record_head(&mut self, ask: RawRequest) -> RawResponse {
        let response = self.exchange(&ask).await;
        self.add_entry(&format!("{} {}", ask.method, ask.path), &response.head);
        response
    }

    async fn exchange(&mut self, ask: &RawRequest) -> RawResponse {
        let mut socket = self.send_request(ask).await;
        let mut bytes = Vec::new();
        // A connection that is cut after an answer has still answered.
        let _ = within(STEP_TIMEOUT, socket.read_to_end(&mut bytes))
            .await
            .expect("an answer in time");
        let text = unpack_gzip(bytes);
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer to {}: {text}", ask.path));
        let (head, body) = check_length(ask, head, body);
        let response = RawResponse {
            status: parse_status(&head),
            text: body,
            head,
        };
        self.requests
            .push((ask.method.clone(), ask.path.clone(), response.status));
        response
    }

    async fn send_request(&self, ask: &RawRequest) -> TcpStream {
        let addr = self.hub.addr();
        let mut socket = TcpStream::connect(addr).await.expect("a connection");
        // Some are refused before they are read to their end.
        let _ = socket
            .write_all(&ask.encode(&addr.to_string(), self.entries.len()))
            .await;
        socket
    }

    pub async fn get(&mut self, key: &str, path: &str) -> RawResponse {
        self.record(raw_request("GET", path).key(key)).await
    }

    pub async fn delete(&mut self, key: &str, path: &str) -> RawResponse {
        self.record(raw_request("DELETE", path).key(key)).await
    }

    pub async fn post(&mut self, key: &str, path: &str, body: &Value) -> RawResponse {
        self.record(raw_request("POST", path).key(key).json(body))
            .await
    }

    pub async fn put(&mut self, key: &str, path: &str, body: &Value) -> RawResponse {
        self.record(raw_request("PUT", path).key(key).json(body))
            .await
    }

    /// Polls unrecorded until `so` holds, then records one request: for what happens in the background.
    pub async fn until(
        &mut self,
        key: &str,
        path: &str,
        so: impl Fn(&Value) -> bool,
    ) -> RawResponse {
        let caller = self
            .hub
            .anonymous()
            .with_key(if key.is_empty() { "none" } else { key });
        crate::support::hub::eventually(path, async || {
            let answer = if key.is_empty() {
                self.hub.anonymous().get(path).await
            } else {
                caller.get(path).await
            };
            serde_json::from_str(&answer.text).is_ok_and(|body| so(&body))
        })
        .await;
        self.get(key, path).await
    }

    /// Adds an entry with placeholders for random values.
    pub fn add_entry(&mut self, title: &str, text: &str) {
        let about = |path: &str| title.contains(path);
        self.placeholders.counted = match (about("/audit"), about("/activity") || about("/events"))
        {
            (true, _) => "",
            (false, true) => "activity",
            (false, false) => "log",
        };
        let (title, text) = (self.placeholders.mask(title), self.placeholders.mask(text));
        self.entries.push(Entry { title, text });
    }

    /// Opens a stream and records its head and its first event.
    pub async fn open_stream(&mut self, ask: RawRequest) -> RawStream {
        let socket = self.send_request(&ask).await;
        let title = format!("{} {}", ask.method, ask.path);
        let mut listening = RawStream {
            socket,
            held: Vec::new(),
            title,
            last: String::new(),
        };
        let head = listening
            .until("\r\n\r\n")
            .await
            .expect("a head")
            .replace("\r\n", "\n");
        self.requests
            .push((ask.method, ask.path, parse_status(&head)));
        let first = listening.event().await.expect("a first event");
        self.add_entry(
            &listening.title,
            &format!("{}\n\n{first}", without_date(&head)),
        );
        listening
    }

    /// Records the next events of a stream and returns the data of the last one.
    pub async fn record_events(&mut self, listening: &mut RawStream, count: usize) -> Value {
        let mut data = Value::Null;
        for _ in 0..count {
            let event = listening
                .event()
                .await
                .unwrap_or_else(|| panic!("{} has ended", listening.title));
            self.add_entry(&format!("heard on {}", listening.title), &event);
            let found = event
                .lines()
                .find_map(|line| line.strip_prefix("data: "))
                .unwrap_or_default();
            data = serde_json::from_str(found).unwrap_or(Value::Null);
        }
        data
    }

    /// Records how a stream ends.
    pub async fn record_end(&mut self, mut listening: RawStream) {
        let mut last = String::new();
        while let Some(event) = listening.event().await {
            last += &event;
        }
        self.add_entry(&format!("the end of {}", listening.title), &last);
    }
}

/// An open stream.
pub struct RawStream {
    socket: TcpStream,
    held: Vec<u8>,
    title: String,
    /// The id of the last event that had one.
    pub last: String,
}

impl RawStream {
    /// The next event as it was written; comments are only there to keep the line open.
    async fn event(&mut self) -> Option<String> {
        loop {
            let event = self.chunk().await?;
            if event
                .lines()
                .all(|line| line.starts_with(':') || line.is_empty())
            {
                continue;
            }
            if let Some(id) = event.lines().find_map(|line| line.strip_prefix("id: ")) {
                self.last = id.to_owned();
            }
            return Some(event);
        }
    }

    /// The next chunk, which is one event. Its size is checked here, since placeholders have other lengths.
    async fn chunk(&mut self) -> Option<String> {
        let size = self.until("\r\n").await?;
        let size = usize::from_str_radix(size.trim_end(), 16).expect("the size of a chunk");
        if size == 0 {
            return None;
        }
        let mut chunk = self.until("\n\n\r\n").await?;
        assert_eq!(chunk.len(), size + 2, "{chunk}");
        chunk.truncate(size);
        Some(chunk)
    }

    async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = self
                .held
                .windows(end.len())
                .position(|window| window == end.as_bytes())
            {
                let piece: Vec<u8> = self.held.drain(..at + end.len()).collect();
                return Some(String::from_utf8(piece).expect("text"));
            }
            let read = within(STEP_TIMEOUT, self.socket.read_buf(&mut self.held));
            match read
                .await
                .unwrap_or_else(|| panic!("nothing more on {}", self.title))
            {
                Ok(1..) => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}

fn parse_status(head: &str) -> u16 {
    head.split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no status: {head}"))
}

/// The machine's own time is on every answer.
fn without_date(head: &str) -> String {
    head.lines()
        .filter(|line| !line.starts_with("date: "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Head and body, with the length checked here, since placeholders have other lengths.
/// A response as text: with a packed body, that of what is in it, whose length replaces the packed one.
fn unpack_gzip(response: Vec<u8>) -> String {
    const HEAD_END: &[u8] = b"\r\n\r\n";
    let response = match String::from_utf8(response) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let at = response
        .windows(HEAD_END.len())
        .position(|bytes| bytes == HEAD_END)
        .expect("a head");
    let head = String::from_utf8(response[..at].to_vec()).expect("a head of text");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    let packed = &response[at + HEAD_END.len()..];
    let mut body = String::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut body)
        .expect("gzip of text");
    let length = |bytes: usize| format!("content-length: {bytes}");
    assert!(head.contains(&length(packed.len())), "{head}");
    let head = head.replace(&length(packed.len()), &length(body.len()));
    format!("{head}\r\n\r\n{body}")
}

fn check_length(ask: &RawRequest, head: &str, body: &str) -> (String, String) {
    let mut lines = Vec::new();
    for line in without_date(head).lines() {
        match line.strip_prefix("content-length: ") {
            Some(length) if ask.method != "HEAD" => {
                assert_eq!(
                    length.parse(),
                    Ok(body.len()),
                    "{} {}",
                    ask.method,
                    ask.path
                );
                lines.push("content-length: whole".to_owned());
            }
            Some(_) | None => lines.push(line.to_owned()),
        }
    }
    let chunked = head.contains("transfer-encoding: chunked");
    (
        lines.join("\n"),
        if chunked {
            join_chunks(body)
        } else {
            body.to_owned()
        },
    )
}

/// Joins chunks: where a body is cut into chunks is not compared.
fn join_chunks(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("the length of a piece");
        out += &rest[..length];
        body = rest[length..]
            .strip_prefix("\r\n")
            .expect("the end of a piece");
    }
    out
}
