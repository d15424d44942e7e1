//! Measures a hub while it is attacked: others are answered at once, and its memory stays within a bound.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Max time of `/health` for others while an attack runs.
const HEALTH_LIMIT: Duration = Duration::from_secs(1);
/// Between two measurements, so that they are no load of their own.
const PAUSE: Duration = Duration::from_millis(50);
/// Longer than any deadline of the hub, so that a slow answer is measured and not given up.
const PATIENCE: Duration = Duration::from_secs(60);

const MIB: u64 = 1024 * 1024;

/// A thread that asks for the health and reads the memory again and again.
pub struct HubWatch {
    stop: Sender<()>,
    /// One for each answer of `/health`.
    answers: Receiver<()>,
    observer: JoinHandle<Observation>,
    bytes_before: u64,
}

#[derive(Default)]
struct Observation {
    answers: usize,
    slowest: Duration,
    most_bytes: u64,
}

impl HubWatch {
    pub fn start(address: SocketAddr, process: u32) -> Self {
        Self::start_from(None, address, process)
    }

    /// `source` is the address of the machine that asks for the health, if it must be a certain one.
    pub fn start_from(source: Option<Ipv4Addr>, address: SocketAddr, process: u32) -> Self {
        let (stop, stopped) = channel();
        let (answered, answers) = channel();
        let observer = std::thread::spawn(move || {
            let mut seen = Observation::default();
            // Measured once more after the end.
            let mut is_over = false;
            loop {
                seen.slowest = seen.slowest.max(time_health(address, source));
                seen.most_bytes = seen.most_bytes.max(resident_bytes(process));
                seen.answers += 1;
                let _ = answered.send(());
                if is_over {
                    return seen;
                }
                is_over = stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout);
            }
        });
        Self {
            stop,
            answers,
            observer,
            bytes_before: resident_bytes(process),
        }
    }

    /// Waits until the health was asked for this often.
    pub fn await_answers(&self, count: usize) {
        for _ in 0..count {
            self.answers.recv_timeout(PATIENCE).unwrap();
        }
    }

    /// Ends the watch: `/health` was answered within a second all the time, and the memory never grew by more than this.
    #[track_caller]
    pub fn assert_unharmed(self, max_growth_mib: u64) {
        drop(self.stop);
        let seen = self.observer.join().unwrap();
        let growth = seen.most_bytes.saturating_sub(self.bytes_before) / MIB;
        println!(
            "{} answers, the slowest after {:?}; {growth} MiB more",
            seen.answers, seen.slowest
        );
        assert!(
            seen.slowest < HEALTH_LIMIT,
            "/health took {:?}",
            seen.slowest
        );
        assert!(growth <= max_growth_mib, "the hub took {growth} MiB more");
    }
}

/// Connects to the hub from this address of the machine.
pub fn connect_from(source: Ipv4Addr, hub: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(source.into(), 0)).unwrap();
        socket.connect(hub).await.unwrap().into_std().unwrap()
    });
    socket.set_nonblocking(false).unwrap();
    socket
}

fn time_health(address: SocketAddr, source: Option<Ipv4Addr>) -> Duration {
    let asked_at = Instant::now();
    let mut socket = match source {
        Some(source) => connect_from(source, address),
        None => TcpStream::connect(address).unwrap(),
    };
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    asked_at.elapsed()
}

/// The resident memory of a process.
fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}
