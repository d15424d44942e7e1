//! The actors of the CLI tests: a hub in its own process, and agents with a home folder each.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Max time of any step: long enough for a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The binary with an empty environment except for PATH and HOME.
pub fn chorus(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chorus"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command.env("HOME", folder).current_dir(folder);
    command
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
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

pub fn run(mut command: Command, input: &str) -> CommandOutput {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that reads no input may have ended already.
    let written = child.stdin.take().unwrap().write_all(input.as_bytes());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    let (output_sender, output_receiver) = channel();
    let pid = child.id();
    std::thread::spawn(move || output_sender.send(child.wait_with_output()));
    let output = match output_receiver.recv_timeout(TIMEOUT) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            send_signal(pid, "KILL");
            panic!("{command:?} did not end");
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// The same command on a terminal of its own, which `script` makes. Standard error is part of its output.
pub fn on_terminal(command: &Command) -> Command {
    let quote = |text: &std::ffi::OsStr| {
        let text = text.to_str().unwrap();
        format!("'{}'", text.replace('\'', "'\\''"))
    };
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quote)
        .collect();
    let mut script = Command::new("script");
    script
        .args(["-qec", &words.join(" "), "/dev/null"])
        .env_clear()
        .current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            script.env(name, value);
        }
    }
    script.env("NO_COLOR", "1").env("SHELL", "/bin/sh");
    script
}

pub fn send_signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    assert!(sent.unwrap().success());
}

/// A process in the background. Its lines are read as they come, and it is killed when dropped.
pub struct RunningProcess {
    child: Child,
    lines: Receiver<String>,
}

impl RunningProcess {
    /// Starts it with standard error written to a file.
    pub fn start_with_log(mut command: Command, log: std::fs::File) -> Self {
        command.stderr(log);
        Self::start(command)
    }

    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (line_sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if line_sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    pub fn next_line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("a line in time")
    }

    /// The next line; `None` when the process ended without one.
    pub fn try_next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line in time"),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn json(&self) -> Value {
        let line = self.next_line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// The lines that it still prints before it ends.
    pub fn remaining_lines(&self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the process does not end: {rest:?}"),
            }
        }
    }

    pub fn send_signal(&self, name: &str) {
        send_signal(self.pid(), name);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended, and returns its exit code.
    pub fn await_exit(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the process did not end");
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `chorus serve` on a data directory.
pub struct Hub {
    pub url: String,
    pub process: RunningProcess,
}

impl Hub {
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        Self::start_command(Self::command(folder, options))
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

    /// Starts a hub by a changed command, such as one that runs in a network namespace.
    pub fn start_command(command: Command) -> Self {
        let process = RunningProcess::start(command);
        let line = process.next_line();
        let url = line
            .strip_prefix("chorus listening on ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        Self { url, process }
    }
}

/// A hub with a temporary folder and an operator.
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

    /// An agent that is not registered yet.
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

    /// Another home with the credentials of this agent and none of its other files, as on a second machine.
    pub fn second_home(&self, agent: &Agent) -> Agent {
        let elsewhere = self.newcomer("elsewhere");
        let credentials = ".chorus/config.json";
        std::fs::create_dir_all(elsewhere.home.join(".chorus")).unwrap();
        std::fs::copy(
            agent.home.join(credentials),
            elsewhere.home.join(credentials),
        )
        .unwrap();
        elsewhere
    }

    pub fn operator(&self, args: &[&str]) -> CommandOutput {
        run(self.operator_command(&[args, &["--json"]].concat()), "")
    }

    pub fn operator_command(&self, args: &[&str]) -> Command {
        let mut command = chorus(self.folder.path());
        command
            .args(["--hub", &self.hub.url])
            .args(args)
            .env("CHORUS_OPERATOR_KEY", OPERATOR);
        command
    }
}

/// An agent and its home; every call is a new process.
pub struct Agent {
    pub home: PathBuf,
    pub hub: String,
}

impl Agent {
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = chorus(&self.home);
        command.env("CHORUS_HUB", &self.hub).args(args);
        command
    }

    /// The same identity while its hub is away: no program listens on that port of another loopback address. The port stays,
    /// because a key is sent to no other hub.
    pub fn while_hub_is_away(&self) -> Self {
        Self {
            home: self.home.clone(),
            hub: self.hub.replace("127.0.0.1", "127.0.0.2"),
        }
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        run(self.command(args), "")
    }

    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        self.run(&[args, &["--json"]].concat()).ok().json()
    }

    pub fn listen(&self, args: &[&str]) -> RunningProcess {
        RunningProcess::start(self.command(&[&["listen", "--json"], args].concat()))
    }

    /// The lines of its history file with a peer.
    pub fn history_lines(&self, peer: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.join(format!(".chorus/history/{peer}.jsonl")))
            .unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits until the hub shows this agent as online.
    pub fn await_online(&self, name: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
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
