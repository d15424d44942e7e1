//! One reader that catches up: opens a stream before its oldest message and reads until it has all of them.

use crate::command_options::CommandOptions;
use crate::load_loop::find_marker_start;
use crate::measurements::{monotonic_nanos, read_usage};
use crate::template::{MARKER_BYTES, MessageParties, parse_marker};
use crate::wire_format::{LoadTarget, read_keys};
use crate::{ResultLine, exit_with_error};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long the stream may be silent before the reader gives up.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

const READ_BYTES: usize = 256 * 1024;

/// Counts the messages on a stream, and those that came before an earlier one of the same publisher.
#[derive(Default)]
struct MarkerCounter {
    /// The bytes after the last marker, which may hold the beginning of the next.
    rest: Vec<u8>,
    /// Of each publisher. Its sequence begins again when `post` runs again, its time does not.
    last_sent_at: HashMap<u32, u64>,
    received: u64,
    out_of_order: u64,
}

impl MarkerCounter {
    fn count_markers(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let end = self.rest.len();
        let mut at = 0;
        while at < end {
            let Some(found) = find_marker_start(&self.rest[at..]) else {
                at = end;
                break;
            };
            at += found;
            if at + MARKER_BYTES > end {
                break;
            }
            let Some((sent_at, publisher, _)) = parse_marker(&self.rest[at..at + MARKER_BYTES])
            else {
                at += 1;
                continue;
            };
            at += MARKER_BYTES;
            self.received += 1;
            let last = self.last_sent_at.insert(publisher, sent_at);
            self.out_of_order += last.is_some_and(|last| last >= sent_at) as u64;
        }
        self.rest.drain(..at);
    }
}

/// Reads the stream of the second agent of the key file (the receiver of `post`) until `--expect` messages came.
pub fn run_replay(a: &CommandOptions) {
    let expected: u64 = a.num("expect", 1_000_000);
    let pid = a.get("pid").map(|_| a.num("pid", 0));
    let keys = read_keys(a.need("keys"));
    let [sender, receiver, ..] = &keys[..] else {
        exit_with_error("--keys needs two agents");
    };
    let target = LoadTarget::parse(a.need("sub-url"));
    let parties = MessageParties {
        sender,
        receiver,
        index: 0,
    };
    let request = target.subscriber_greeting(&a.all("sub-header"), &parties);
    let mut counter = MarkerCounter::default();
    let mut buf = vec![0; READ_BYTES];
    let cpu_before = read_usage(pid).cpu;
    let started_at = monotonic_nanos();
    let fail =
        |error: std::io::Error| -> ! { exit_with_error(&format!("{}: {error}", target.addr)) };
    let mut socket = TcpStream::connect(target.addr).unwrap_or_else(|error| fail(error));
    let _ = socket.set_read_timeout(Some(SILENCE_LIMIT));
    socket
        .write_all(&request)
        .unwrap_or_else(|error| fail(error));
    while counter.received < expected {
        match socket.read(&mut buf) {
            Ok(length) if length > 0 => counter.count_markers(&buf[..length]),
            Ok(_) | Err(_) => break,
        }
    }
    let secs = (monotonic_nanos() - started_at) as f64 / 1e9;
    let received = counter.received as f64;
    let cpu = read_usage(pid).cpu - cpu_before;
    let mut out = ResultLine::new("replay", a);
    out.num("secs", secs).num("events_per_s", received / secs);
    out.num("server_cpu_s_per_million", cpu * 1e6 / received.max(1.0));
    out.num("received", received)
        .num("lost", expected as f64 - received);
    println!(
        "{}}}",
        out.num("out_of_order", counter.out_of_order as f64).0
    );
}
