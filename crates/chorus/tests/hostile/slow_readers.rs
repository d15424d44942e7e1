//! Clients that ask for long answers and hardly read them.

use crate::actors::{Hub, TIMEOUT};
use crate::support::{ask, hub_address, resident_bytes, time_health};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CARDS: usize = 1_000;
const READERS: usize = 200;
/// What the readers may cost. Before answers had a bound in bytes, 120 of them held a gigabyte.
const MAX_GROWTH_BYTES: u64 = 192 * 1024 * 1024;

/// Asks for the whole directory and reads nothing yet.
fn open_reader(hub: &Hub) -> TcpStream {
    let mut socket = TcpStream::connect(hub_address(hub)).unwrap();
    let request = b"GET /agents HTTP/1.1\r\nhost: localhost\r\n\r\n";
    socket.write_all(request).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Reads a little; false when the hub has closed the connection.
fn read_a_little(socket: &mut TcpStream) -> bool {
    match socket.read(&mut [0; 1024]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

//
#[test]
fn slow_readers_of_the_directory_hold_little_and_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), &[]);
    for number in 0..CARDS {
        let card = json!({"card_version": "0.3", "about": "x".repeat(8_000)});
        let body = json!({"agent_id": format!("large-{number}@chorus"), "agent_card": card});
        assert_eq!(ask(&hub, "POST", "/register", Some(&body)).0, 201);
    }
    let before = resident_bytes(&hub);
    let mut readers: Vec<TcpStream> = (0..READERS).map(|_| open_reader(&hub)).collect();
    let started_at = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut largest = 0;
    while !readers.is_empty() {
        assert!(
            started_at.elapsed() < TIMEOUT,
            "{} readers of one kilobyte a second are still served",
            readers.len()
        );
        slowest = slowest.max(time_health(&hub));
        largest = largest.max(resident_bytes(&hub));
        std::thread::sleep(Duration::from_millis(500));
        readers.retain_mut(read_a_little);
    }
    let growth = largest.saturating_sub(before);
    assert!(growth < MAX_GROWTH_BYTES, "{growth} bytes");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}
