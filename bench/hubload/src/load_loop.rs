//! The event loop: one thread owns every subscription and every publishing connection, and drives
//! them all from one epoll instance. The main thread steers it and reads its counters.
use crate::measurements::{LatencyHistogram, monotonic_nanos};
use crate::syscalls::{self, EpollEvents, EpollQueue, IN};
use crate::template::{MARKER_BYTES, MessageStamp, parse_marker};
use crate::wire_format::{self, RequestForm, WireScheme};
use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

// phases, after opening (0)
pub const RUN: u8 = 1;
pub const DRAIN: u8 = 2;
pub const QUIT: u8 = 3;

pub struct SubPlan {
    pub scheme: WireScheme,
    pub addr: SocketAddrV4,
    pub hello: Vec<u8>,
}

pub struct PubPlan {
    pub scheme: WireScheme,
    pub addr: SocketAddrV4,
    pub hello: Vec<u8>,
    /// sent in turn: (publisher number in the marker, request)
    pub requests: Vec<(u32, RequestForm)>,
    /// stop after sending each request once
    pub once: bool,
}

/// What is to be done, and how it goes.
#[derive(Default)]
pub struct LoadState {
    pub phase: AtomicU8,
    pub measuring: AtomicBool,
    pub ready: AtomicU64,
    pub sent: AtomicU64,
    pub acked: AtomicU64,
    pub failed: AtomicU64,
    pub received: AtomicU64,
    pub closed: AtomicU64,
    /// deliveries expected per message: all subscribers, or one
    pub fan: u64,
    /// most messages sent but not delivered to everyone (0 = no limit)
    pub window: u64,
    /// messages per second (0 = as fast as acknowledgements and the window allow)
    pub rate: f64,
    /// subscriber i receives from publisher i and from no other
    pub paired: bool,
    pub publishers: usize,
    /// messages sent before this moment are leftovers of another run, and not counted
    pub born: u64,
}

/// What the loop hands back at the end.
pub struct LoadReport {
    pub delivery: LatencyHistogram,
    pub ack: LatencyHistogram,
    pub out_of_order: u64,
    pub misrouted: u64,
    pub stale: u64,
    /// subscriptions that received at least one message
    pub reached: usize,
}

struct SubscriberSocket {
    fd: RawFd,
    scheme: WireScheme,
    open: bool,
    got: bool,
    tail_len: u8,
    tail: [u8; MARKER_BYTES],
}

struct PublisherSocket {
    fd: RawFd,
    plan: PubPlan,
    input: Vec<u8>,
    sent_at: u64,
    open: bool,
    busy: bool,
    count: usize,
}

const ROOM: usize = 64; // before the read buffer, for the unfinished end of the last read
const PUB: u64 = 1 << 40; // epoll data: a publishing connection
const TICK: u64 = 20_000_000;

pub struct LoadLoop<'a> {
    sh: &'a LoadState,
    ep: EpollQueue,
    evs: EpollEvents,
    subs: Vec<SubscriberSocket>,
    pubs: Vec<PublisherSocket>,
    free: Vec<usize>,
    buf: Vec<u8>,
    out: Vec<u8>,
    scratch: Vec<u8>,
    hello: HashMap<usize, Vec<u8>>,
    /// last sequence number by subscriber (and publisher), next one by publisher
    last: Vec<u32>,
    seqs: Vec<u32>,
    rng: u64,
    received: u64,
    /// deliveries given up on, so that a lossy server cannot stall the window for ever
    forgiven: u64,
    stuck: (u64, u64),
    measuring: bool,
    complained: bool,
    r: LoadReport,
}

impl<'a> LoadLoop<'a> {
    pub fn run(sh: &'a LoadState, subs: Vec<SubPlan>, pubs: Vec<PubPlan>) -> LoadReport {
        let mut l = LoadLoop {
            sh,
            ep: EpollQueue::new(),
            evs: syscalls::new_events(),
            last: vec![0; subs.len() * if sh.paired { 1 } else { sh.publishers.max(1) }],
            seqs: vec![0; sh.publishers],
            subs: Vec::with_capacity(subs.len()),
            pubs: Vec::new(),
            free: Vec::new(),
            buf: vec![0; ROOM + (256 << 10)],
            out: Vec::with_capacity(64 << 10),
            scratch: Vec::with_capacity(64 << 10),
            hello: HashMap::new(),
            rng: monotonic_nanos() | 1,
            received: 0,
            forgiven: 0,
            stuck: (0, 0),
            measuring: false,
            complained: false,
            r: LoadReport {
                delivery: LatencyHistogram::new(),
                ack: LatencyHistogram::new(),
                out_of_order: 0,
                misrouted: 0,
                stale: 0,
                reached: 0,
            },
        };
        l.open(subs, pubs);
        l.drive();
        l.r.reached = l.subs.iter().filter(|s| s.got).count();
        l.r
    }

    /// Opens everything, with at most 128 handshakes in flight so that no listen queue overflows.
    fn open(&mut self, subs: Vec<SubPlan>, pubs: Vec<PubPlan>) {
        for (i, p) in subs.into_iter().enumerate() {
            let fd = syscalls::connect_socket(p.addr)
                .unwrap_or_else(|e| crate::exit_with_error(&format!("subscriber {i}: {e}")));
            syscalls::send_whole(fd, &p.hello);
            self.ep.add(fd, IN, i as u64);
            self.subs.push(SubscriberSocket {
                fd,
                scheme: p.scheme,
                open: false,
                got: false,
                tail_len: 0,
                tail: [0; MARKER_BYTES],
            });
            while i as u64 + 1 > 128 + self.sh.ready.load(Relaxed) + self.sh.closed.load(Relaxed) {
                self.poll(TICK);
            }
        }
        for (i, plan) in pubs.into_iter().enumerate() {
            let open = plan.hello.is_empty();
            self.pubs.push(PublisherSocket {
                fd: -1,
                plan,
                input: Vec::new(),
                sent_at: 0,
                open,
                busy: false,
                count: 0,
            });
            self.dial(i);
            self.free.push(i);
        }
        while self.pubs.iter().any(|p| !p.open) {
            self.poll(TICK);
        }
    }

    fn dial(&mut self, i: usize) {
        let p = &mut self.pubs[i];
        p.fd = syscalls::connect_socket(p.plan.addr)
            .unwrap_or_else(|e| crate::exit_with_error(&format!("publisher: {e}")));
        p.input.clear();
        syscalls::send_whole(p.fd, &p.plan.hello);
        self.ep.add(p.fd, IN, PUB | i as u64);
    }

    fn drive(&mut self) {
        let mut due = 0;
        loop {
            let phase = self.sh.phase.load(Relaxed);
            if phase == QUIT {
                return;
            }
            self.measuring = self.sh.measuring.load(Relaxed);
            let mut wait = TICK;
            if phase == RUN && self.sh.rate > 0.0 {
                let t = monotonic_nanos();
                due = if due == 0 { t } else { due };
                while due <= t && self.may_send() {
                    self.send(due);
                    due += (1e9 / self.sh.rate) as u64;
                }
                if due > t {
                    wait = (due - t).min(TICK);
                }
            } else if phase == RUN {
                while self.may_send() {
                    self.send(monotonic_nanos());
                }
            }
            self.poll(wait);
        }
    }

    fn may_send(&mut self) -> bool {
        if self.free.is_empty() || self.sh.window == 0 {
            return !self.free.is_empty();
        }
        let due = (self.sh.sent.load(Relaxed) - self.sh.failed.load(Relaxed)) * self.sh.fan;
        let left = due.saturating_sub(self.received + self.forgiven);
        if left < self.sh.window * self.sh.fan {
            return true;
        }
        // nothing delivered for a second although the window is full: those events are lost
        if self.stuck.0 != self.received || self.stuck.1 == 0 {
            self.stuck = (self.received, monotonic_nanos());
        } else if monotonic_nanos() - self.stuck.1 > 1_000_000_000 {
            self.forgiven += left;
        }
        false
    }

    fn poll(&mut self, wait: u64) {
        let n = self.ep.wait(&mut self.evs, wait);
        for i in 0..n {
            let id = self.evs[i].u64;
            if id & PUB != 0 {
                self.on_pub((id & !PUB) as usize)
            } else {
                self.on_sub(id as usize)
            }
        }
        self.sh.received.store(self.received, Relaxed);
    }

    fn send(&mut self, ts: u64) {
        let Some(i) = self.free.pop() else { return };
        let p = &mut self.pubs[i];
        let (publisher, request) = &p.plan.requests[p.count % p.plan.requests.len()];
        let seq = &mut self.seqs[*publisher as usize];
        *seq += 1;
        p.count += 1;
        let mut m = MessageStamp {
            ts,
            publisher: *publisher,
            seq: *seq,
            rng: self.rng,
        };
        request.render(&mut self.out, &mut self.scratch, &mut m);
        self.rng = m.rng;
        p.busy = true;
        p.sent_at = ts;
        self.sh.sent.fetch_add(1, Relaxed);
        syscalls::send_whole(p.fd, &self.out); // a failure shows up as end of stream
    }

    fn on_pub(&mut self, i: usize) {
        let p = &mut self.pubs[i];
        let Some(n) = syscalls::receive_bytes(p.fd, &mut self.buf[ROOM..]) else {
            return;
        };
        if n == 0 {
            // the server ended a keep-alive connection: open another
            syscalls::close_socket(p.fd);
            if std::mem::take(&mut p.busy) {
                self.sh.failed.fetch_add(1, Relaxed);
                self.free.push(i);
            }
            return self.dial(i);
        }
        p.input.extend_from_slice(&self.buf[ROOM..ROOM + n]);
        if !p.open {
            let Some(n) = wire_format::check_publisher(p.plan.scheme, &p.input) else {
                return;
            };
            p.input.drain(..n);
            p.open = true;
        }
        let Some((len, ok)) = wire_format::parse_ack(p.plan.scheme, &p.input).filter(|_| p.busy)
        else {
            return;
        };
        if ok {
            self.sh.acked.fetch_add(1, Relaxed);
            if self.measuring {
                self.r.ack.record(monotonic_nanos() - p.sent_at);
            }
        } else {
            self.sh.failed.fetch_add(1, Relaxed);
            if !std::mem::replace(&mut self.complained, true) {
                eprintln!("hubload: refused: {}", String::from_utf8_lossy(&p.input));
            }
        }
        p.input.drain(..len);
        p.busy = false;
        if !p.plan.once || p.count < p.plan.requests.len() {
            self.free.push(i);
        }
    }

    fn on_sub(&mut self, i: usize) {
        let s = &mut self.subs[i];
        let mut at = ROOM - s.tail_len as usize;
        self.buf[at..ROOM].copy_from_slice(&s.tail[..s.tail_len as usize]);
        let Some(n) = syscalls::receive_bytes(s.fd, &mut self.buf[ROOM..]) else {
            return;
        };
        if n == 0 {
            syscalls::close_socket(s.fd);
            self.sh.closed.fetch_add(1, Relaxed);
            return;
        }
        let end = ROOM + n;
        if !s.open {
            let seen = self.hello.entry(i).or_default();
            seen.extend_from_slice(&self.buf[ROOM..end]);
            match wire_format::check_subscription(s.scheme, seen) {
                None => return,
                Some(Err(why)) => crate::exit_with_error(&format!("subscription refused: {why}")),
                Some(Ok(())) => self.hello.remove(&i),
            };
            s.open = true;
            self.sh.ready.fetch_add(1, Relaxed);
            return; // nothing is published before everyone is subscribed
        }
        let t = if self.measuring { monotonic_nanos() } else { 0 };
        s.tail_len = 0;
        while let Some(p) = find_marker_start(&self.buf[at..end]) {
            at += p;
            if at + MARKER_BYTES > end {
                // it may be cut here: the rest comes with the next read
                s.tail_len = (end - at) as u8;
                s.tail[..end - at].copy_from_slice(&self.buf[at..end]);
                break;
            }
            let Some((ts, publisher, seq)) = parse_marker(&self.buf[at..at + MARKER_BYTES]) else {
                at += 1;
                continue;
            };
            at += MARKER_BYTES;
            if ts < self.sh.born {
                self.r.stale += 1;
                continue;
            }
            s.got = true;
            self.received += 1;
            if self.measuring {
                self.r.delivery.record(t.saturating_sub(ts));
            }
            let lane = if self.sh.paired {
                i
            } else {
                i * self.sh.publishers + publisher as usize
            };
            if self.sh.paired && publisher as usize != i {
                self.r.misrouted += 1;
            } else {
                self.r.out_of_order += (seq != self.last[lane] + 1) as u64;
                self.last[lane] = seq;
            }
        }
    }
}

/// Where the next marker could begin.
pub fn find_marker_start(b: &[u8]) -> Option<usize> {
    let p = unsafe { libc::memchr(b.as_ptr() as *const _, b'~' as i32, b.len()) };
    (!p.is_null()).then(|| p as usize - b.as_ptr() as usize)
}
