//! The machine's physical limit: a server that does no more than the kernel must do. It swallows
//! the request head, keeps no state beyond a list of sockets, and writes ready-made bytes.
//! `GET /x/NAME` subscribes as NAME; `POST /x/NAME` goes to NAME, `POST /x/all` to everyone.
use crate::syscalls::{self, EpollQueue, IN, OUT};
use crate::wire_format::find_bytes;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct BareServerOptions {
    pub listen: SocketAddrV4,
    pub threads: usize,
    /// append every message to this file before acknowledging it: one write per epoll round
    pub log: Option<String>,
    /// ... and fdatasync it, once per round
    pub fsync: bool,
    /// write all the events of one epoll round to a subscriber in one system call
    pub coalesce: bool,
}

/// The bytes of an event, and the socket they go to (None: every subscriber of the thread).
type Event = (Option<RawFd>, Arc<[u8]>);

/// One thread's mailbox; connections are dealt to the threads in turn.
struct ThreadInbox {
    ep: EpollQueue,
    wake: RawFd,
    inbox: Mutex<Vec<Event>>,
}

struct BareServer {
    listener: TcpListener,
    names: Mutex<HashMap<Vec<u8>, (usize, RawFd)>>,
    thread_inboxes: Vec<ThreadInbox>,
}

#[derive(Default)]
struct ClientBuffers {
    input: Vec<u8>,
    pending: Vec<u8>,
}

pub fn run_bare_server(o: BareServerOptions) {
    let listener = TcpListener::bind(o.listen)
        .unwrap_or_else(|e| crate::exit_with_error(&format!("{}: {e}", o.listen)));
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    listener
        .set_nonblocking(true)
        .expect("non-blocking listener");
    let thread_inbox = |_| ThreadInbox {
        ep: EpollQueue::new(),
        wake: unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) },
        inbox: Mutex::default(),
    };
    let hub = BareServer {
        listener,
        names: Mutex::default(),
        thread_inboxes: (0..o.threads).map(thread_inbox).collect(),
    };
    hub.thread_inboxes[0].ep.add(
        hub.listener.as_raw_fd(),
        IN,
        hub.listener.as_raw_fd() as u64,
    );
    std::thread::scope(|s| {
        for t in 0..o.threads {
            let hub = &hub;
            let o = &o;
            let open = |p: &String| {
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(format!("{p}.{t}"))
                    .expect("log")
            };
            let log = o.log.as_ref().map(open);
            let conns = Vec::new();
            let w = ServerThread {
                t,
                hub,
                o,
                me: &hub.thread_inboxes[t],
                conns,
                subs: vec![],
                log,
                round: vec![],
                acks: vec![],
                dealt: 0,
            };
            s.spawn(move || w.run());
        }
    });
}

struct ServerThread<'a> {
    t: usize,
    hub: &'a BareServer,
    o: &'a BareServerOptions,
    me: &'a ThreadInbox,
    /// by file descriptor
    conns: Vec<ClientBuffers>,
    subs: Vec<RawFd>,
    log: Option<File>,
    /// this epoll round: the messages (with their thread), and who waits for an acknowledgement
    round: Vec<(Option<usize>, Event)>,
    acks: Vec<RawFd>,
    dealt: usize,
}

impl ServerThread<'_> {
    fn run(mut self) {
        let mut evs = syscalls::new_events();
        let mut buf = vec![0u8; 64 << 10];
        self.me.ep.add(self.me.wake, IN, self.me.wake as u64);
        loop {
            let n = self.me.ep.wait(&mut evs, 1_000_000_000);
            for e in &evs[..n] {
                let fd = e.u64 as RawFd;
                let what = e.events;
                if fd == self.hub.listener.as_raw_fd() {
                    self.accept();
                } else if fd == self.me.wake {
                    unsafe { libc::eventfd_read(fd, &mut 0) };
                } else {
                    if self.conns.len() <= fd as usize {
                        self.conns
                            .resize_with(fd as usize * 2, ClientBuffers::default);
                    }
                    if what & OUT != 0 {
                        self.flush(fd);
                    }
                    if what & !OUT != 0 {
                        self.read(fd, &mut buf);
                    }
                }
            }
            self.finish();
        }
    }

    fn accept(&mut self) {
        while let Ok((s, _)) = self.hub.listener.accept() {
            let fd = syscalls::prepare_socket(s).expect("accepted socket");
            self.hub.thread_inboxes[self.dealt % self.hub.thread_inboxes.len()]
                .ep
                .add(fd, IN, fd as u64);
            self.dealt += 1;
        }
    }

    fn read(&mut self, fd: RawFd, buf: &mut [u8]) {
        let Some(n) = syscalls::receive_bytes(fd, buf) else {
            return;
        };
        let c = &mut self.conns[fd as usize];
        if n == 0 {
            *c = ClientBuffers::default();
            self.subs.retain(|&s| s != fd);
            return syscalls::close_socket(fd);
        }
        c.input.extend_from_slice(&buf[..n]);
        while let Some(end) = find_bytes(&c.input, b"\r\n\r\n").map(|e| e + 4) {
            let path = c.input.split(|&b| b == b' ').nth(1).unwrap_or(b"/");
            let name = path.rsplit(|&b| b == b'/').next().unwrap_or(b"");
            if c.input[0] == b'G' {
                self.hub
                    .names
                    .lock()
                    .unwrap()
                    .insert(name.to_vec(), (self.t, fd));
                self.subs.push(fd);
                c.input = Vec::new();
                syscalls::send_whole(
                    fd,
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
                );
                continue;
            }
            let length = find_bytes(&c.input, b"Content-Length: ")
                .map(|i| &c.input[i + 16..end])
                .unwrap_or(b"");
            let length = length
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .fold(0, |a, b| a * 10 + (b - b'0') as usize);
            if c.input.len() < end + length {
                break;
            }
            let event: Arc<[u8]> = [b"data: ", &c.input[end..end + length], b"\n\n"]
                .concat()
                .into();
            let (thread, to) = if name == b"all" {
                (Some(self.t), None)
            } else {
                self.hub
                    .names
                    .lock()
                    .unwrap()
                    .get(name)
                    .map(|&(t, fd)| (Some(t), Some(fd)))
                    .unwrap_or_default()
            };
            self.round.push((thread, (to, event)));
            self.acks.push(fd);
            c.input.drain(..end + length);
        }
    }

    /// Ends the round: log, acknowledge, deliver.
    fn finish(&mut self) {
        let join = |events: &mut dyn Iterator<Item = &Event>| {
            events
                .flat_map(|e| e.1.iter().copied())
                .collect::<Vec<u8>>()
        };
        if let (Some(f), false) = (&mut self.log, self.round.is_empty()) {
            f.write_all(&join(&mut self.round.iter().map(|r| &r.1)))
                .expect("log");
            if self.o.fsync {
                f.sync_data().expect("fdatasync");
            }
        }
        for fd in std::mem::take(&mut self.acks) {
            self.write(fd, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        let mut mine = std::mem::take(&mut *self.me.inbox.lock().unwrap());
        for (thread, event) in self.round.drain(..).filter(|r| r.0.is_some()) {
            for (t, thread_inbox) in self.hub.thread_inboxes.iter().enumerate() {
                if t != self.t && (event.0.is_none() || thread == Some(t)) {
                    thread_inbox.inbox.lock().unwrap().push(event.clone());
                    unsafe { libc::eventfd_write(thread_inbox.wake, 1) };
                }
            }
            if thread == Some(self.t) {
                mine.push(event);
            }
        }
        if self.o.coalesce && mine.len() > 1 && mine.iter().all(|e| e.0.is_none()) {
            mine = vec![(None, join(&mut mine.iter()).into())];
        }
        for (to, bytes) in mine {
            match to {
                Some(fd) => self.write(fd, &bytes),
                None => (0..self.subs.len()).for_each(|i| self.write(self.subs[i], &bytes)),
            }
        }
    }

    fn write(&mut self, fd: RawFd, bytes: &[u8]) {
        let c = &mut self.conns[fd as usize];
        let sent = if c.pending.is_empty() {
            syscalls::send(fd, bytes).unwrap_or(0)
        } else {
            0
        };
        if sent < bytes.len() {
            if c.pending.is_empty() {
                self.me.ep.modify(fd, IN | OUT, fd as u64);
            }
            c.pending.extend_from_slice(&bytes[sent..]);
        }
    }

    fn flush(&mut self, fd: RawFd) {
        let c = &mut self.conns[fd as usize];
        if let Some(n) = syscalls::send(fd, &c.pending) {
            c.pending.drain(..n);
        }
        if c.pending.is_empty() {
            c.pending = Vec::new();
            self.me.ep.modify(fd, IN, fd as u64);
        }
    }
}
