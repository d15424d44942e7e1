//! A hub in its own process, requests to it over raw sockets, and the servers of an attacker.

use crate::support_watch::HubWatch;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const OPERATOR: &str = "operator-key-for-tests";
/// Max time of one request of a test: longer than any deadline of the hub.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// `chorus serve` in a temporary folder.
pub struct AttackedHub {
    pub address: SocketAddr,
    process: Child,
    folder: tempfile::TempDir,
}

impl Drop for AttackedHub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl AttackedHub {
    pub fn start(options: &[&str]) -> Self {
        Self::start_limited(&[&["--rate-limit", "0"], options].concat())
    }

    /// With the rate limits that the options give, or the default ones.
    pub fn start_limited(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
        command
            .env_clear()
            .current_dir(folder.path())
            .args(["serve", "--log", "error"])
            .args(["--listen", "127.0.0.1:0", "--operator-key", OPERATOR])
            .args(options)
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("chorus listening on http://")
            .unwrap_or_else(|| panic!("{line:?}"));
        Self {
            address: address.parse().unwrap(),
            process,
            folder,
        }
    }

    /// Where the hub keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("chorus-data")
    }

    /// Measures the hub from now on.
    pub fn watch(&self) -> HubWatch {
        HubWatch::start(self.address, self.process.id())
    }

    /// The same, asking from this address of the machine.
    pub fn watch_from(&self, source: Ipv4Addr) -> HubWatch {
        HubWatch::start_from(Some(source), self.address, self.process.id())
    }

    pub fn client(&self) -> HubClient {
        HubClient(self.address)
    }
}

/// Makes requests, one connection each. Threads of an attack have a copy.
#[derive(Clone, Copy)]
pub struct HubClient(SocketAddr);

impl HubClient {
    /// The status and the body of the answer.
    pub fn request(
        self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(REQUEST_TIMEOUT)).unwrap();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let bearer = key.map_or(String::new(), |key| {
            format!("Authorization: Bearer {key}\r\n")
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{bearer}Content-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.0,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Sends these bytes and reads to the end: the status, and the whole answer.
    pub fn send_raw(self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(REQUEST_TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    /// Registers an agent; the status of the answer.
    pub fn register_named(self, name: &str) -> u16 {
        let body = registration(name, None);
        self.request("POST", "/register", None, &body).0
    }

    /// Registers an agent and returns its key.
    pub fn register(self, body: &Value, key: Option<&str>) -> String {
        let (status, answer) = self.request("POST", "/register", key, body);
        assert_eq!(status, 201, "{answer}");
        answer["data"]["api_key"].as_str().unwrap().to_owned()
    }

    /// Sends a message and returns its delivery status, and how long that took.
    pub fn send_message(self, key: &str, sender: &str, receiver: &str) -> (String, Duration) {
        let started = Instant::now();
        let envelope = json!({"chorus_version": "0.4", "sender_id": sender, "original_text": "hello", "sender_culture": "en"});
        let body = json!({"receiver_id": receiver, "envelope": envelope});
        let (_, answer) = self.request("POST", "/messages", Some(key), &body);
        let delivery = answer["data"]["delivery"].as_str().unwrap_or_default();
        (format!("{delivery} {answer}"), started.elapsed())
    }
}

pub fn registration(agent_id: &str, endpoint: Option<&str>) -> Value {
    let mut body = json!({
        "agent_id": agent_id,
        "agent_card": {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]},
    });
    if let Some(endpoint) = endpoint {
        body["endpoint"] = json!(endpoint);
    }
    body
}

/// Threads that repeat an act until they are dropped.
pub struct RunningAttack {
    stop: Arc<AtomicBool>,
    pub rounds: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl RunningAttack {
    /// `act` gets a number that no other call gets.
    pub fn start(threads: usize, act: impl Fn(usize) + Send + Sync + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicUsize::new(0));
        let next = Arc::new(AtomicUsize::new(0));
        let act = Arc::new(act);
        let threads = (0..threads)
            .map(|_| {
                let (stop, rounds) = (stop.clone(), rounds.clone());
                let (next, act) = (next.clone(), act.clone());
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        act(next.fetch_add(1, Ordering::Relaxed));
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        Self {
            stop,
            rounds,
            threads,
        }
    }

    /// Ends the attack; a thread whose act failed fails the test.
    pub fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// Accepts connections and never answers. Returns how many it has accepted.
pub fn start_tarpit(listener: TcpListener) -> Arc<AtomicUsize> {
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            held.push(stream);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    accepted
}

/// Answers every POST with a protocol reply, at once. Returns its port, and how many it has answered.
pub fn start_webhook() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answered = Arc::new(AtomicUsize::new(0));
    let count = answered.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            let body = r#"{"status":"ok"}"#;
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (port, answered)
}

/// Reads one request, head and body.
fn read_request(stream: &mut TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        let line = std::mem::take(&mut line).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let _ = reader.read_exact(&mut vec![0; length]);
}

/// A name server. Names that begin with `dead` get no answer; those that begin with `tarpit` are 127.0.0.2, all others 127.0.0.1.
pub fn start_name_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, client)) = socket.recv_from(&mut packet) {
            if let Some(answer) = answer_query(&packet[..length]) {
                let _ = socket.send_to(&answer, client);
            }
        }
    });
    address
}

fn answer_query(query: &[u8]) -> Option<Vec<u8>> {
    let first_label = 13..13 + usize::from(query[12]);
    let name = String::from_utf8_lossy(&query[first_label]).to_lowercase();
    let address = match name.as_str() {
        name if name.starts_with("dead") => return None,
        name if name.starts_with("tarpit") => Ipv4Addr::new(127, 0, 0, 2),
        _ => Ipv4Addr::LOCALHOST,
    };
    let mut at = 12;
    while query[at] != 0 {
        at += usize::from(query[at]) + 1;
    }
    let question_end = at + 5;
    let asks_for_ipv4 = query[at + 1..at + 3] == [0, 1];
    let mut answer = query[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(asks_for_ipv4), 0, 0, 0, 0]);
    answer.extend(&query[12..question_end]);
    if asks_for_ipv4 {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// Waits until `is_reached`, at most a minute.
pub fn await_condition(what: &str, is_reached: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_reached() {
        assert!(started.elapsed() < REQUEST_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
