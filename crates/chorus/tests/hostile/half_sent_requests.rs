//! Requests that are never finished: their heads and bodies take bounded memory and leave places for others.

use crate::support_compute::AttackedHub;
use crate::support_watch::connect_from;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const CLIENTS: usize = 400;
/// Almost the longest head that the hub reads.
const HEAD_BYTES: usize = 30 * 1024;
/// Many times the longest head.
const LARGE_HEAD_BYTES: usize = 400 * 1024;
/// What four hundred heads may take: 32 KiB each, and what belongs to a connection. 20 MiB were measured.
const MAX_HEADS_MIB: u64 = 32;
/// Almost the longest body.
const BODY_BYTES: usize = 250 * 1024;
/// All four hundred bodies would be 97 MiB. On a machine of 256 MB one address may hold 4 MiB of them. 16 KiB of each body are not
/// counted, and neither are the 32 KiB that the parser buffers of each request.
const MAX_BODIES_MIB: u64 = 48;
/// A client that does not attack, as the hub sees it.
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// How often it asks for the health while all places of the attacker are held: for a second.
const HEALTH_ANSWERS: usize = 20;
/// What sixteen connections may take at most.
const MAX_PLACES_MIB: u64 = 16;

fn start_request(hub: SocketAddr, start: &str, bytes: usize) -> TcpStream {
    let mut socket = TcpStream::connect(hub).unwrap();
    socket
        .set_write_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut request = start.to_owned();
    request.extend(std::iter::repeat_n('x', bytes));
    // A hub that refuses the request may close the connection while it is being written.
    let _ = socket.write_all(request.as_bytes());
    socket
}

#[test]
fn heads_that_never_end_take_little_memory() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let watch = hub.watch();
    let start = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: ";
    let held: Vec<_> = (0..CLIENTS)
        .map(|_| start_request(hub.address, start, HEAD_BYTES))
        .collect();
    assert_eq!(hub.client().register_named("alice@chorus"), 201);
    watch.assert_unharmed(MAX_HEADS_MIB);
    drop(held);
}

// all of it would be 156 MiB.
#[test]
fn heads_beyond_the_limit_are_not_buffered() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let watch = hub.watch();
    let start = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: ";
    let held: Vec<_> = (0..CLIENTS)
        .map(|_| start_request(hub.address, start, LARGE_HEAD_BYTES))
        .collect();
    assert_eq!(hub.client().register_named("alice@chorus"), 201);
    watch.assert_unharmed(MAX_HEADS_MIB);
    drop(held);
}

#[test]
fn bodies_that_never_end_take_little_memory_and_are_refused_beyond_it() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let watch = hub.watch();
    let start = format!(
        "POST /register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        BODY_BYTES + 1
    );
    let mut held: Vec<_> = (0..CLIENTS)
        .map(|_| start_request(hub.address, &start, BODY_BYTES))
        .collect();
    // The last ones have their answer before the deadline of their bodies.
    let last = held.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut answer = [0; 12];
    last.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503");
    assert_eq!(hub.client().register_named("alice@chorus"), 201);
    watch.assert_unharmed(MAX_BODIES_MIB);
    drop(held);
}

#[test]
fn one_address_leaves_places_for_others() {
    let places = 16;
    let hub = AttackedHub::start(&["--max-connections-per-address", &places.to_string()]);
    // The watch asks from another address: that of the attack has no place left.
    let watch = hub.watch_from(OTHER_ADDRESS);
    let held: Vec<_> = (0..places)
        .map(|_| start_request(hub.address, "GET / HTTP/1.1\r\n", 0))
        .collect();
    let from_same = ask_from(Ipv4Addr::LOCALHOST, hub.address);
    assert!(!from_same.starts_with("HTTP/1.1 200"), "{from_same}");
    let from_other = ask_from(OTHER_ADDRESS, hub.address);
    assert!(from_other.starts_with("HTTP/1.1 200"), "{from_other}");
    watch.await_answers(HEALTH_ANSWERS);
    watch.assert_unharmed(MAX_PLACES_MIB);
    drop(held);
}

/// Asks for the health from this address of the machine; the answer, or nothing.
fn ask_from(source: Ipv4Addr, hub: SocketAddr) -> String {
    let mut socket = connect_from(source, hub);
    let request = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    let _ = socket.write_all(request.as_bytes());
    let _ = socket.read_to_string(&mut answer);
    answer
}
