//! One shell for a whole page, and the hubs that the page starts.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Printed after each command to mark its end; no command of a page prints it.
const MARK: &str = "== end of command";
/// Max time of one command: long enough for a slow machine.
const TIMEOUT: Duration = Duration::from_secs(30);

fn read_lines(out: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (line_sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line_sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// The first process of a group. The whole group is killed when it is dropped: a page that fails has commands in the background
/// that it would have ended later.
pub struct ProcessGuard(Child);

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Bash in a process group of its own, with the tested binary first on its path, and nothing of this machine's user.
fn bash(home: &Path) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_chorus")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc"])
        .current_dir(home)
        .process_group(0)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC");
    bash
}

/// Starts a hub by a shell command; returns it with the first line that it prints.
pub fn start_hub(home: &Path, command: &str) -> (ProcessGuard, String) {
    let mut hub = bash(home)
        .args(["-c", command])
        .env("CHORUS_LISTEN", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = read_lines(hub.stdout.take().unwrap());
    let hub = ProcessGuard(hub);
    let line = lines.recv_timeout(TIMEOUT);
    (
        hub,
        line.unwrap_or_else(|_| panic!("{command}: printed no address")),
    )
}

pub struct Shell {
    input: ChildStdin,
    lines: Receiver<String>,
    bash: ProcessGuard,
}

impl Shell {
    pub fn start(home: &Path) -> Self {
        let mut bash = bash(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = bash.stdin.take().unwrap();
        input.write_all(b"exec 2>&1\n").unwrap();
        let lines = read_lines(bash.stdout.take().unwrap());
        Self {
            input,
            lines,
            bash: ProcessGuard(bash),
        }
    }

    /// Ends the shell and waits until all that it started has ended: then nothing holds its output open. False if something runs
    /// on.
    pub fn end(self) -> bool {
        drop(self.bash);
        self.lines.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Disconnected)
    }

    /// Runs a command; returns the lines that it printed and its exit code.
    pub fn run(&mut self, command: &str) -> (Vec<String>, String) {
        // Without standard input: a command that reads it would consume the next command.
        writeln!(
            self.input,
            "{{ {command}\n}} </dev/null; printf '\\n%s %s\\n' '{MARK}' $?"
        )
        .unwrap();
        let mut printed = Vec::new();
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line =
                line.unwrap_or_else(|_| panic!("{command}: did not end; it printed {printed:#?}"));
            match line.strip_prefix(MARK) {
                Some(status) => {
                    // The line break before the mark may have added an empty line.
                    if printed.last().is_some_and(String::is_empty) {
                        printed.pop();
                    }
                    return (printed, status.trim().into());
                }
                None => printed.push(line),
            }
        }
    }
}
