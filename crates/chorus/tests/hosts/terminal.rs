//! A host in a terminal, as its user runs it.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What a terminal answers to the questions of a program: its type, the place of the cursor and its colours.
const TERMINAL_ANSWERS: [(&str, &str); 4] = [
    ("\x1b[6n", "\x1b[1;1R"),
    ("\x1b[c", "\x1b[?62;c"),
    ("\x1b]10;?", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    ("\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
];

/// A program with a terminal of its own, by `script` of util-linux. It is killed with everything that it started.
pub struct Terminal {
    child: Child,
    screen: Arc<Mutex<String>>,
    keyboard: Arc<Mutex<ChildStdin>>,
}

impl Terminal {
    /// `None` with a message without `script`; under CI that is a failure.
    pub fn start(command: &Command) -> Option<Self> {
        if Command::new("script").arg("--version").output().is_err() {
            assert!(
                std::env::var_os("CI").is_none(),
                "`script` of util-linux is needed to make a terminal"
            );
            println!("skipped: there is no program `script`, which makes a terminal");
            return None;
        }
        let mut outer = Command::new("script");
        outer
            .args(["-qfec", &shell_line(command), "/dev/null"])
            .env_clear()
            .env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            outer.env(name, value.unwrap_or_default());
        }
        if let Some(folder) = command.get_current_dir() {
            outer.current_dir(folder);
        }
        let mut child = outer
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keyboard = Arc::new(Mutex::new(child.stdin.take().unwrap()));
        let answering = keyboard.clone();
        let mut output = child.stdout.take().unwrap();
        let screen: Arc<Mutex<String>> = Arc::default();
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                for (question, answer) in TERMINAL_ANSWERS {
                    if text.contains(question) {
                        let mut keyboard = answering.lock().unwrap();
                        let _ = keyboard.write_all(answer.as_bytes());
                        let _ = keyboard.flush();
                    }
                }
                shown.lock().unwrap().push_str(&text);
            }
        });
        Some(Self {
            child,
            screen,
            keyboard,
        })
    }

    /// Presses keys as the user does.
    pub fn press_keys(&self, keys: &str) {
        let mut keyboard = self.keyboard.lock().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// What the program has written, for the message of a failed test.
    pub fn screen(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let plain = anstream::adapter::strip_str(&screen).to_string();
        let from = plain
            .char_indices()
            .rev()
            .nth(3_000)
            .map_or(0, |(at, _)| at);
        plain[from..].to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The hangup of its terminal ends the program and what it has started.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command for a shell.
fn shell_line(command: &Command) -> String {
    let quote =
        |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy().replace('\'', "'\\''"));
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    words.map(quote).collect::<Vec<_>>().join(" ")
}
