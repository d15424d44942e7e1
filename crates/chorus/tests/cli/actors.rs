//! Who takes part: a hub in a process of its own, and agents with a home each.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Long enough for a busy machine; what takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary with nothing of our own surroundings in its own.
pub fn chorus(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", folder).current_dir(folder);
    command
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn json(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}")))
            .collect()
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

pub fn run(mut command: Command, input: &str) -> Ended {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let (tell, done) = channel();
    let pid = child.id();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let output = match done.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(pid, "KILL");
            panic!("{command:?} did not end");
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(sent.unwrap().success());
}

/// A process that goes on, whose lines are read as they come and which does not outlive the test.
pub struct Ongoing {
    child: Child,
    lines: Receiver<String>,
}

impl Ongoing {
    /// What it says beside its lines goes to a file.
    pub fn start_with(mut command: Command, beside: std::fs::File) -> Self {
        command.stderr(beside);
        Self::start(command)
    }

    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    pub fn json(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// What it still printed before it ended.
    pub fn rest(&self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("it goes on: {rest:?}"),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Its exit code, once it has ended.
    pub fn await_end(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did not end");
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `chorus serve` on a data directory.
pub struct Hub {
    pub url: String,
    pub process: Ongoing,
}

impl Hub {
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        Self::begin(Self::command(folder, options))
    }

    pub fn command(folder: &Path, options: &[&str]) -> Command {
        let mut command = chorus(folder);
        command
            .args(["serve", "--log", "warn", "--rate-limit", "0"])
            .args(options);
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command
    }

    /// The same with a command that was changed, such as to run elsewhere.
    pub fn begin(command: Command) -> Self {
        let process = Ongoing::start(command);
        let line = process.line();
        let url = line
            .strip_prefix("chorus listening on ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        Self { url, process }
    }
}

/// A hub with a folder for everything, and its operator.
pub struct Scene {
    pub folder: tempfile::TempDir,
    pub hub: Hub,
}

pub const OPERATOR: &str = "operator-key-for-tests";

impl Scene {
    pub fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start(
            folder.path(),
            &["--operator-key", OPERATOR, "--allow-private-endpoints"],
        );
        Self { folder, hub }
    }

    /// Somebody who may not have registered yet.
    pub fn newcomer(&self, name: &str) -> Agent {
        let home = self.folder.path().join(name);
        std::fs::create_dir_all(&home).unwrap();
        Agent {
            home,
            hub: self.hub.url.clone(),
        }
    }

    /// A registered agent `name@chorus`.
    pub fn agent(&self, name: &str) -> Agent {
        let agent = self.newcomer(name);
        agent
            .run(&["register", &format!("{name}@chorus"), "--culture", "en"])
            .ok();
        agent
    }

    pub fn operator(&self, words: &[&str]) -> Ended {
        let mut command = chorus(self.folder.path());
        command
            .args(["--hub", &self.hub.url, "--json"])
            .args(words)
            .env("CHORUS_OPERATOR_KEY", OPERATOR);
        run(command, "")
    }
}

/// An agent and its home; every call is a new process, as in a new session.
pub struct Agent {
    pub home: PathBuf,
    pub hub: String,
}

impl Agent {
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = chorus(&self.home);
        command.env("CHORUS_HUB", &self.hub).args(words);
        command
    }

    pub fn run(&self, words: &[&str]) -> Ended {
        run(self.command(words), "")
    }

    pub fn json(&self, words: &[&str]) -> Vec<Value> {
        self.run(&[words, &["--json"]].concat()).ok().json()
    }

    pub fn listen(&self, words: &[&str]) -> Ongoing {
        Ongoing::start(self.command(&[&["listen", "--json"], words].concat()))
    }

    /// Its history with a peer, as the file has it.
    pub fn file(&self, peer: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.join(format!(".chorus/history/{peer}.jsonl")))
            .unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits until the hub says that this agent listens.
    pub fn await_online(&self, name: &str) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if self
                .json(&["discover", "--online"])
                .iter()
                .any(|row| row["agent_id"] == name)
            {
                return;
            }
        }
        panic!("{name} never came online");
    }
}

pub fn text_of(line: &Value) -> &str {
    line["envelope"]["original_text"].as_str().unwrap()
}
