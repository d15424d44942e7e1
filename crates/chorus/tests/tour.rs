//! Runs the tour of the README and compares the output with the printed one.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SERVE: &str = "cargo run --release -- serve";
/// Printed after each command to mark its end; no command of the tour prints it.
const MARK: &str = "== end of command";
/// Max time of one command: long enough for a slow machine.
const TIMEOUT: Duration = Duration::from_secs(30);

struct Step {
    command: String,
    printed: Vec<String>,
}

/// The commands in the `console` blocks of a text: `$ ` starts a command, `> ` continues it, the other lines are its output.
fn parse_steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (
                line.strip_prefix("$ "),
                line.strip_prefix("> "),
                steps.last_mut(),
            ) {
                (Some(command), _, _) => steps.push(Step {
                    command: command.into(),
                    printed: vec![],
                }),
                (None, Some(more), Some(step)) => {
                    step.command = format!("{}\n{more}", step.command)
                }
                (None, None, Some(step)) => step.printed.push(line.into()),
                (None, _, None) => panic!("output before any command: {line}"),
            },
        }
    }
    steps
}

/// Replaces ids and times, which differ from run to run, by placeholders.
fn normalize_line(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let word = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
            .unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        out.push_str(&normalize_word(&rest[..word]));
        rest = &rest[word..];
    }
    out.trim_end().to_owned()
}

fn normalize_word(word: &str) -> String {
    let bare = word.trim_end_matches([':', '.']);
    let shape: String = bare
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let uuid = bare.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && bare.split('-').all(hex);
    let normalized = if uuid {
        "<id>"
    } else if shape.starts_with("0000-00-00T00:00:00") {
        "<time>"
    } else if shape == "00:00:00" {
        "<clock>"
    } else {
        bare
    };
    format!("{normalized}{}", &word[bare.len()..])
}

/// Whether `line` matches the README; one `…` there matches any text.
fn lines_match(expected: &str, line: &str) -> bool {
    match normalize_line(expected).split_once('…') {
        Some((head, tail)) => {
            normalize_line(line).starts_with(head) && normalize_line(line).ends_with(tail)
        }
        None => normalize_line(expected) == normalize_line(line),
    }
}

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

/// A process that is killed when dropped.
struct ProcessGuard(Child);

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One shell for the whole tour.
struct Shell {
    input: ChildStdin,
    lines: Receiver<String>,
    _bash: ProcessGuard,
}

impl Shell {
    fn start(home: &Path) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_chorus")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc"])
            .current_dir(home)
            .env_clear();
        bash.env("PATH", path)
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC");
        let mut bash = bash
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
            _bash: ProcessGuard(bash),
        }
    }

    fn run(&mut self, command: &str) -> (Vec<String>, String) {
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

fn serve(home: &Path) -> (ProcessGuard, String) {
    let mut hub = Command::new(env!("CARGO_BIN_EXE_chorus"));
    hub.arg("serve")
        .current_dir(home)
        .env_clear()
        .env("CHORUS_LISTEN", "127.0.0.1:0");
    let mut hub = hub
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = read_lines(hub.stdout.take().unwrap());
    let hub = ProcessGuard(hub);
    let line = lines
        .recv_timeout(TIMEOUT)
        .expect("the hub prints its address");
    (hub, line)
}

fn check(step: &Step, printed: &[String]) {
    let is_equal = step.printed.len() == printed.len()
        && step
            .printed
            .iter()
            .zip(printed)
            .all(|(a, b)| lines_match(a, b));
    assert!(
        is_equal,
        "$ {}\n--- README ---\n{}\n--- printed ---\n{}",
        step.command,
        step.printed.join("\n"),
        printed.join("\n")
    );
}

#[test]
fn the_tour_prints_what_the_readme_says() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"))
            .unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut shell = Shell::start(home.path());
    let mut hub = None;
    let mut port = String::new();
    let steps = parse_steps(&readme);
    assert!(
        steps.len() >= 8,
        "the tour has only {} commands",
        steps.len()
    );
    for step in steps {
        if step.command == SERVE {
            let (running, line) = serve(home.path());
            port = line.rsplit(':').next().unwrap().to_owned();
            check(&step, &[line.replace(&port, "3000")]);
            hub = Some(running);
            continue;
        }
        let (printed, status) = shell.run(&step.command.replace(":3000", &format!(":{port}")));
        let printed: Vec<String> = printed
            .iter()
            .map(|line| line.replace(&format!(":{port}"), ":3000"))
            .collect();
        check(&step, &printed);
        assert_eq!(status, "0", "$ {}", step.command);
    }
    assert!(hub.is_some(), "the tour never starts a hub");
}

#[test]
fn ids_and_times_are_not_compared_and_everything_else_is() {
    let a = "10:31:07 0198f2c4-7a41-7c1e-8000-000000000001 at 2026-03-20T10:00:00.000123Z queued";
    let b = "23:59:59 01990000-0000-7000-8000-00000000abcd at 2027-01-01T00:00:00.9Z queued";
    assert!(lines_match(a, b));
    assert!(!lines_match(a, &b.replace("queued", "delivered")));
    assert!(lines_match(
        "kept in …/alice.json",
        "kept in /tmp/x/alice.json"
    ));
    assert!(!lines_match(
        "kept in …/alice.json",
        "kept in /tmp/x/bob.json"
    ));
    assert!(lines_match(
        "{\"success\":true,…",
        "{\"success\":true,\"data\":1}"
    ));
    assert!(!lines_match("{\"success\":true,…", "{\"success\":false}"));
}
