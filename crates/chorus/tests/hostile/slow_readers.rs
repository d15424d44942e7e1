//! Clients that ask for long answers and hardly read them.

use crate::actors::{Hub, TIMEOUT};
use crate::support::{ask, hub_address, open_files, resident_bytes, time_health};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

const CARDS: usize = 1_000;
const READERS: usize = 120;
/// What the readers may cost. Before answers had a bound in bytes, as many held a gigabyte.
const MAX_GROWTH_BYTES: u64 = 128 * 1024 * 1024;

/// Asks for more of the directory than the kernel buffers for a client with a small window, and reads nothing yet.
fn open_reader(hub: &Hub) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let socket = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 * 1024).unwrap();
        let socket = socket.connect(hub_address(hub)).await.unwrap();
        socket.into_std().unwrap()
    });
    let request = "GET /agents HTTP/1.1\r\nhost: localhost\r\n\r\n";
    (&socket).write_all(request.repeat(4).as_bytes()).unwrap();
    socket
}

/// The largest memory of the hub and its slowest answer to others, while the readers take two kilobytes a second.
fn await_readers_cut(hub: &Hub, readers: &mut [TcpStream], files_before: usize) -> (u64, Duration) {
    let started_at = Instant::now();
    let mut largest = 0;
    let mut slowest = Duration::ZERO;
    // A few more files are open while the health is asked for.
    while largest == 0 || open_files(hub) > files_before + 8 {
        assert!(
            started_at.elapsed() < TIMEOUT,
            "{} files: the readers are still served",
            open_files(hub)
        );
        std::thread::sleep(Duration::from_millis(500));
        for reader in readers.iter_mut() {
            // What is there, or nothing: the hub may have closed the connection.
            let _ = reader.read(&mut [0; 1024]);
        }
        slowest = slowest.max(time_health(hub));
        largest = largest.max(resident_bytes(hub));
    }
    (largest, slowest)
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
    let files_before = open_files(&hub);
    let mut readers: Vec<TcpStream> = (0..READERS).map(|_| open_reader(&hub)).collect();
    let (largest, slowest) = await_readers_cut(&hub, &mut readers, files_before);
    let growth = largest.saturating_sub(before);
    assert!(growth < MAX_GROWTH_BYTES, "{growth} bytes");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}
