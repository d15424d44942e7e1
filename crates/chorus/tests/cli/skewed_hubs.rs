//! Hubs in real processes whose clocks are shifted by libfaketime, each by its own number of seconds.

use crate::actors::{Hub, OPERATOR};
use crate::servers::{Servers, address, await_so, there};
use chorus_client::HubClient;
use chorus_wire::secret::Secret;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

/// What a busy machine may be late by: far less than a clock is off.
pub const NEAR: i64 = 15;

/// The library that shifts the clock of a process; `None`, with a message, where it is not installed.
fn libfaketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let found = folders
        .chain(["/usr/lib64".into()])
        .map(|folder| folder.join("faketime/libfaketime.so.1"));
    let found = found.into_iter().find(|path| path.exists());
    there("libfaketime", found.is_some())
        .then_some(found)
        .flatten()
}

/// Hubs whose clocks are off, each by the seconds in a file that may change while the hub runs.
pub struct SkewedHubs {
    pub hubs: Vec<Hub>,
    servers: Servers,
}

impl SkewedHubs {
    /// One hub for each number of seconds that a machine is off by.
    pub fn start(off: &[i64]) -> Option<Self> {
        let library = libfaketime()?;
        let mut skewed = Self {
            hubs: Vec::new(),
            servers: Servers::start()?,
        };
        for (number, seconds) in off.iter().enumerate() {
            let name = format!("hub{number}");
            let mut command =
                skewed
                    .servers
                    .hub_command(&name, "127.0.0.1:0", &skewed.servers.nats);
            command.args(["--operator-key", OPERATOR, "--allow-private-endpoints"]);
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME_TIMESTAMP_FILE", skewed.file(number));
            command.env("FAKETIME_NO_CACHE", "1");
            // How long something takes is nothing that machines disagree about.
            command
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
            skewed.set_offset(number, *seconds);
            skewed.hubs.push(Hub::begin(command));
            skewed.await_offset(number, *seconds);
        }
        Some(skewed)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.servers.folder.path().join(format!("hub{number}.time"))
    }

    fn set_offset(&self, number: usize, seconds: i64) {
        let (file, new) = (
            self.file(number),
            self.servers.folder.path().join("new.time"),
        );
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Waits until the machine of a hub is off by this much, as the head of its answers shows it.
    fn await_offset(&self, number: usize, seconds: i64) {
        await_so("the machine's clock is off", || {
            (machine_time(&self.hubs[number]) - unix_now() - seconds).abs() < NEAR
        });
    }

    pub fn jump(&self, number: usize, seconds: i64) {
        self.set_offset(number, seconds);
        self.await_offset(number, seconds);
    }

    /// The head of an answer never shows an earlier time than before: it stands still until the machine's clock is there again.
    pub fn fall_back(&self, number: usize, seconds: i64) {
        self.set_offset(number, seconds);
        let still = || (machine_time(&self.hubs[number]), unix_now());
        let mut since = still();
        await_so("the date stands still", || {
            let (shown, at) = still();
            if shown != since.0 {
                since = (shown, at);
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

/// What time it is on the machine of a hub, to the second: HTTP says it with every answer.
fn machine_time(hub: &Hub) -> i64 {
    let mut socket = TcpStream::connect(address(hub)).unwrap();
    socket
        .write_all(b"GET /health HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n")
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
