//! Hubs in real processes whose clocks are shifted by libfaketime, each by its own number of seconds.

use crate::actors::{Hub, OPERATOR};
use crate::servers::{Servers, await_condition, hub_address, is_available};
use chorus_client::HubClient;
use chorus_wire::secret::Secret;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Max delay of a busy machine in seconds: much less than a clock is off.
pub const NEAR: i64 = 15;

/// The library that shifts the clock of a process; `None`, with a message, where it is not installed.
pub fn libfaketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let found = folders
        .chain(["/usr/lib64".into()])
        .map(|folder| folder.join("faketime/libfaketime.so.1"));
    let found = found.into_iter().find(|path| path.exists());
    is_available("libfaketime", found.is_some())
        .then_some(found)
        .flatten()
}

/// Lets a process read its clock with the offset that is in a file.
pub fn shift_clock(command: &mut Command, library: &Path, file: &Path) {
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", file)
        .env("FAKETIME_NO_CACHE", "1");
    // The monotonic clock is not shifted: machines measure durations alike.
    command
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
}

/// Sets the offset in seconds, in one step.
pub fn write_offset(file: &Path, seconds: i64) {
    let new_file = file.with_extension("new");
    std::fs::write(&new_file, format!("{seconds:+}\n")).unwrap();
    std::fs::rename(new_file, file).unwrap();
}

/// Hubs with shifted clocks; the offset of each is in a file that may change while the hub runs.
pub struct SkewedHubs {
    pub hubs: Vec<Hub>,
    servers: Servers,
}

impl SkewedHubs {
    /// Starts one hub for each offset in seconds.
    pub fn start(offsets: &[i64]) -> Option<Self> {
        let library = libfaketime()?;
        let mut skewed = Self {
            hubs: Vec::new(),
            servers: Servers::start()?,
        };
        for (number, seconds) in offsets.iter().enumerate() {
            let name = format!("hub{number}");
            let mut command =
                skewed
                    .servers
                    .hub_command(&name, "127.0.0.1:0", &skewed.servers.nats);
            command.args(["--operator-key", OPERATOR, "--allow-private-endpoints"]);
            shift_clock(&mut command, &library, &skewed.file(number));
            skewed.set_offset(number, *seconds);
            skewed.hubs.push(Hub::start_command(command));
            skewed.await_offset(number, *seconds);
        }
        Some(skewed)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.servers.folder.path().join(format!("hub{number}.time"))
    }

    fn set_offset(&self, number: usize, seconds: i64) {
        write_offset(&self.file(number), seconds);
    }

    /// Waits until the `date` header of a hub shows this offset.
    fn await_offset(&self, number: usize, seconds: i64) {
        await_condition("the hub's clock is shifted", || {
            (machine_time(&self.hubs[number]) - unix_now() - seconds).abs() < NEAR
        });
    }

    pub fn jump(&self, number: usize, seconds: i64) {
        self.set_offset(number, seconds);
        self.await_offset(number, seconds);
    }

    /// Sets the clock back. The `date` header never goes back: it stands still until the clock has caught up.
    pub fn fall_back(&self, number: usize, seconds: i64) {
        self.set_offset(number, seconds);
        let observe = || (machine_time(&self.hubs[number]), unix_now());
        let mut since = observe();
        await_condition("the date stands still", || {
            let (date, at) = observe();
            if date != since.0 {
                since = (date, at);
            }
            at - since.1 >= 3
        });
    }

    pub fn client_at(&self, number: usize, key: &str) -> HubClient {
        HubClient::new(&self.hubs[number].url, Some(Secret::new(key.to_owned()))).unwrap()
    }
}

pub fn unix_now() -> i64 {
    chorus_hub::Clock::system().now().0 / 1_000_000
}

/// The clock of a hub's machine in seconds, from the `date` header of an answer.
fn machine_time(hub: &Hub) -> i64 {
    let mut socket = TcpStream::connect(hub_address(hub)).unwrap();
    socket
        .write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let date = answer
        .lines()
        .find_map(|line| line.strip_prefix("date: "))
        .unwrap_or_else(|| panic!("{answer}"));
    let seconds = Command::new("date")
        .args(["-d", date, "+%s"])
        .output()
        .unwrap();
    String::from_utf8(seconds.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}
