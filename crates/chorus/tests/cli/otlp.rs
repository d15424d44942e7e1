//! `chorus serve --otlp`: the binary exports traces as its variables say, and `chorus mcp` passes on the trace of its host.

use crate::actors::{Agent, Hub, RunningProcess, TIMEOUT, chorus};
use crate::mcp::Host;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// One request to the collector: the head in small letters, and the body.
struct ExportedBatch {
    head: String,
    body: Vec<u8>,
}

impl ExportedBatch {
    fn contains(&self, octets: &[u8]) -> bool {
        self.body.windows(octets.len()).any(|some| some == octets)
    }
}

/// A collector that takes every batch.
fn start_collector() -> (String, Receiver<ExportedBatch>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, batches) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                while let Some(batch) = read_batch(&mut socket) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    if sender.send(batch).is_err() || socket.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, batches)
}

fn read_batch(socket: &mut std::net::TcpStream) -> Option<ExportedBatch> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        socket.read_exact(&mut octet).ok()?;
        head.push(octet[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let mut lengths = head
        .lines()
        .filter_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; lengths.next()?.parse().unwrap()];
    socket.read_exact(&mut body).ok()?;
    Some(ExportedBatch { head, body })
}

fn register_agent(folder: &std::path::Path, url: &str, name: &str) -> Agent {
    let agent = Agent {
        home: folder.join(name),
        hub: url.to_owned(),
    };
    std::fs::create_dir_all(&agent.home).unwrap();
    agent.run(&["register", name, "--culture", "en"]).ok();
    agent
}

// OPS-05
#[test]
fn the_variables_of_opentelemetry_turn_the_export_on_and_a_key_is_logged_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (url, batches) = start_collector();
    let log = folder.path().join("log");
    let mut command = chorus(folder.path());
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "debug"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=hidden-key");
    let mut hub = RunningProcess::start_with_log(command, std::fs::File::create(&log).unwrap());
    let line = hub.next_line();
    let url = line.strip_prefix("chorus listening on ").unwrap();
    register_agent(folder.path(), url, "alice");
    hub.send_signal("TERM");
    assert_eq!(hub.await_exit(), Some(0));
    let batch = batches.recv_timeout(TIMEOUT).expect("a batch");
    assert!(
        batch.head.starts_with("post /v1/traces http/1.1"),
        "{}",
        batch.head
    );
    assert!(batch.head.contains("api-key: hidden-key"), "{}", batch.head);
    assert!(batch.contains(b"POST /register") && batch.contains(b"service.name"));
    assert!(!batch.contains(b"alice"));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("hidden-key"), "{log}");
}

// OPS-05: an empty variable is none
#[test]
fn an_empty_variable_leaves_the_export_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Hub::command(folder.path(), &[]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        .env("OTEL_TRACES_SAMPLER_ARG", "for=another-program");
    let hub = Hub::start_command(command);
    assert!(hub.url.starts_with("http://"));
}

// OPS-05: a host names its trace in `_meta`
#[test]
fn a_tool_call_of_a_host_is_part_of_the_trace_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let (url, batches) = start_collector();
    let hub = Hub::start(folder.path(), &["--otlp", &url]);
    let alice = register_agent(folder.path(), &hub.url, "alice");
    let mut host = Host::start(alice.command(&["mcp", "--session", "s1"]));
    let called = host.request(
        "tools/call",
        json!({ "name": "chorus_discover", "arguments": {},
            "_meta": { "traceparent": format!("00-{TRACE}-b7ad6b7169203331-01") } }),
    );
    assert!(called["result"].is_object(), "{called}");
    let trace: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&TRACE[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let batch = batches.recv_timeout(left).expect("a batch of the trace");
        if batch.contains(&trace) {
            assert!(batch.contains(b"tools/call chorus_discover"));
            return;
        }
    }
}
