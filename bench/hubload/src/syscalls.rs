//! Thin wrappers over the handful of system calls the generator needs.
use std::io;
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{IntoRawFd, RawFd};

pub const IN: u32 = libc::EPOLLIN as u32;
pub const OUT: u32 = libc::EPOLLOUT as u32;

/// Connects (blocking: on loopback that is immediate), then makes the socket non-blocking.
pub fn connect_socket(to: SocketAddrV4) -> io::Result<RawFd> {
    prepare_socket(TcpStream::connect(to)?)
}

pub fn prepare_socket(s: TcpStream) -> io::Result<RawFd> {
    s.set_nodelay(true)?;
    s.set_nonblocking(true)?;
    Ok(s.into_raw_fd())
}

/// Some(n) bytes (0 = end of stream or a dead socket), None = would block.
pub fn receive_bytes(fd: RawFd, buf: &mut [u8]) -> Option<usize> {
    read_outcome(unsafe { libc::recv(fd, buf.as_mut_ptr() as *mut _, buf.len(), 0) })
}

/// Some(n) bytes written (0 = dead socket), None = would block.
pub fn send(fd: RawFd, buf: &[u8]) -> Option<usize> {
    read_outcome(unsafe { libc::send(fd, buf.as_ptr() as *const _, buf.len(), libc::MSG_NOSIGNAL) })
}

fn read_outcome(n: isize) -> Option<usize> {
    let again = || {
        matches!(
            io::Error::last_os_error().raw_os_error(),
            Some(libc::EAGAIN | libc::EINTR)
        )
    };
    if n < 0 && again() {
        None
    } else {
        Some(n.max(0) as usize)
    }
}

/// Writes everything, waiting for room (at most a second at a time) when the socket is full.
pub fn send_whole(fd: RawFd, mut buf: &[u8]) -> bool {
    while !buf.is_empty() {
        match send(fd, buf) {
            Some(0) => return false,
            Some(n) => buf = &buf[n..],
            None => {
                let mut p = libc::pollfd {
                    fd,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                if unsafe { libc::poll(&mut p, 1, 1000) } <= 0 {
                    return false;
                }
            }
        }
    }
    true
}

pub fn close_socket(fd: RawFd) {
    unsafe { libc::close(fd) };
}

/// Raises the limit on open files as far as this user may.
pub fn raise_file_limit() {
    let mut r = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut r) };
    r.rlim_cur = r.rlim_max;
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &r) };
}

/// Keeps this process (threads to come included) on one processor.
pub fn pin_to_cpu(cpu: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

pub type EpollEvents = Vec<libc::epoll_event>;

pub fn new_events() -> EpollEvents {
    vec![libc::epoll_event { events: 0, u64: 0 }; 512]
}

pub struct EpollQueue(RawFd);

impl EpollQueue {
    pub fn new() -> EpollQueue {
        EpollQueue(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
    }

    pub fn add(&self, fd: RawFd, events: u32, data: u64) {
        self.ctl(libc::EPOLL_CTL_ADD, fd, events, data);
    }

    pub fn modify(&self, fd: RawFd, events: u32, data: u64) {
        self.ctl(libc::EPOLL_CTL_MOD, fd, events, data);
    }

    fn ctl(&self, op: i32, fd: RawFd, events: u32, data: u64) {
        let mut e = libc::epoll_event { events, u64: data };
        let r = unsafe { libc::epoll_ctl(self.0, op, fd, &mut e) };
        assert!(r == 0, "epoll_ctl: {}", io::Error::last_os_error());
    }

    /// Waits with nanosecond resolution (epoll_pwait2), so that paced sends are not rounded to 1 ms.
    pub fn wait(&self, evs: &mut EpollEvents, timeout_ns: u64) -> usize {
        let tv_sec = (timeout_ns / 1_000_000_000) as i64;
        let tv_nsec = (timeout_ns % 1_000_000_000) as i64;
        let ts = libc::timespec { tv_sec, tv_nsec };
        let n = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0,
                evs.as_mut_ptr(),
                evs.len() as i32,
                &ts,
                0usize,
                8usize,
            )
        };
        n.max(0) as usize
    }
}
