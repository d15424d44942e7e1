//! What the attacks share: requests as bytes, the memory of the hub's process, and how fast it answers others.

use crate::actors::Hub;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub fn hub_address(hub: &Hub) -> SocketAddr {
    hub.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Sends one request on a new connection and reads the answer to its end: status and body.
pub fn ask(hub: &Hub, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
    let mut socket = TcpStream::connect(hub_address(hub)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// How long `/health` takes for another client.
pub fn time_health(hub: &Hub) -> Duration {
    let asked_at = Instant::now();
    assert_eq!(ask(hub, "GET", "/health", None).0, 200);
    asked_at.elapsed()
}

/// How many files and sockets the hub's process has open.
pub fn open_files(hub: &Hub) -> usize {
    let folder = format!("/proc/{}/fd", hub.process.pid());
    std::fs::read_dir(folder).unwrap().count()
}

/// The resident memory of the hub's process, in bytes.
pub fn resident_bytes(hub: &Hub) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.process.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}
