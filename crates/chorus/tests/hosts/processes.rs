//! The processes that a host has started, found by their home folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Max time until what a killed host has started is gone: two seconds for a waker (WAK-07), with room for a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub struct HomeProcess {
    pub id: u32,
    pub program: PathBuf,
    pub line: String,
}

/// The running processes whose home folder is this one.
pub fn list_processes(home: &Path) -> Vec<HomeProcess> {
    let wanted = format!("HOME={}", home.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let read = |name: &str| {
            let bytes = std::fs::read(entry.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let Ok(program) = std::fs::read_link(entry.path().join("exe")) else {
            continue;
        };
        if read("environ").split('\0').any(|entry| entry == wanted) {
            let line = read("cmdline").replace('\0', " ");
            found.push(HomeProcess { id, program, line });
        }
    }
    found
}

/// Our own programs among them.
pub fn list_chorus(home: &Path) -> Vec<HomeProcess> {
    let is_chorus = |process: &HomeProcess| process.program.ends_with("chorus");
    list_processes(home).into_iter().filter(is_chorus).collect()
}

/// The wakers among them: `chorus wake`, or `chorus mcp --wake` for Codex.
pub fn list_wakers(home: &Path) -> Vec<HomeProcess> {
    let is_waker = |process: &HomeProcess| {
        process.line.contains("wake --lines")
            || process.line.contains("wake --once")
            || (process.line.contains(" mcp ") && process.line.contains("--wake"))
    };
    list_chorus(home).into_iter().filter(is_waker).collect()
}

pub fn kill_process(id: u32) {
    // It may have ended by itself.
    let _ = std::process::Command::new("kill")
        .args(["-KILL", &id.to_string()])
        .status();
}

/// Waits until no program of ours runs any more.
pub fn await_no_chorus(home: &Path) {
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        let left = list_chorus(home);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
