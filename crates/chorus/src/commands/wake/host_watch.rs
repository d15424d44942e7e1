//! Notices that the host of a session has ended: its process is gone, or it closed our standard output.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::time::Duration;

/// How often the host is looked for. A waker must end within two seconds after its session.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// A shell that a host starts for a command line waits for it, so it outlives a killed host.
const SHELLS: [&str; 5] = ["sh", "dash", "bash", "zsh", "ash"];

/// A process and when it started: its id may be given to another process later.
struct WatchedProcess {
    id: u32,
    start: String,
}

impl WatchedProcess {
    fn find(id: u32) -> Option<Self> {
        let start = start_mark(id)?;
        Some(Self { id, start })
    }

    fn has_ended(&self) -> bool {
        start_mark(self.id).is_none_or(|start| start != self.start)
    }
}

pub struct HostWatch {
    processes: Vec<WatchedProcess>,
    /// 1 when the process was started without a parent that could end.
    parent: u32,
    watches_output: bool,
}

impl HostWatch {
    /// Watches the process that `CLAUDE_PID` names, else the parent.
    pub fn begin(watches_output: bool) -> Self {
        let named = std::env::var("CLAUDE_PID")
            .ok()
            .and_then(|text| WatchedProcess::find(text.trim().parse().ok()?));
        let parent = std::os::unix::process::parent_id();
        let (processes, parent) = match named {
            Some(host) => (vec![host], 1),
            None => (find_shell_parent(parent).into_iter().collect(), parent),
        };
        Self {
            processes,
            parent,
            watches_output,
        }
    }

    /// Waits until the host has ended.
    pub async fn wait_ended(&self) {
        while !self.has_ended() {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }

    fn has_ended(&self) -> bool {
        let has_new_parent = self.parent != 1 && std::os::unix::process::parent_id() != self.parent;
        has_new_parent
            || self.processes.iter().any(WatchedProcess::has_ended)
            || (self.watches_output && is_output_closed())
    }
}

/// The process that started a shell for our command line.
fn find_shell_parent(parent: u32) -> Option<WatchedProcess> {
    let arguments = fs::read_to_string(format!("/proc/{parent}/cmdline")).ok()?;
    let mut arguments = arguments.split('\0');
    let program = arguments.next()?.rsplit('/').next()?;
    let is_shell = SHELLS.contains(&program) && arguments.any(|argument| argument == "-c");
    if !is_shell {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{parent}/stat")).ok()?;
    let starter: u32 = stat_field(&stat, 1)?.parse().ok()?;
    WatchedProcess::find(starter).filter(|process| process.id != 1)
}

/// The process that started this one, as a text that no later process has.
pub fn parent_mark() -> String {
    process_mark(std::os::unix::process::parent_id())
}

/// This process, as a text that no later process has.
pub fn own_mark() -> String {
    process_mark(std::process::id())
}

fn process_mark(id: u32) -> String {
    format!("{id}:{}", start_mark(id).unwrap_or_default())
}

/// Whether the process with this mark still runs.
pub fn is_running(mark: &str) -> bool {
    let Some((id, start)) = mark.split_once(':') else {
        return false;
    };
    let found = id.parse().ok().and_then(start_mark);
    found.is_some_and(|found| found == start)
}

/// A text that differs between processes with the same id; `None` when the process has ended.
fn start_mark(id: u32) -> Option<String> {
    let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else {
        return find_without_proc(id);
    };
    match stat_field(&stat, 0)? {
        "Z" | "X" => None,
        _ => stat_field(&stat, 19).map(str::to_owned),
    }
}

/// On systems without `/proc` only whether the process exists is known.
fn find_without_proc(id: u32) -> Option<String> {
    if fs::exists("/proc/self/stat").unwrap_or(false) {
        return None;
    }
    let process = rustix::process::Pid::from_raw(i32::try_from(id).ok()?)?;
    let exists = !matches!(
        rustix::process::test_kill_process(process),
        Err(rustix::io::Errno::SRCH)
    );
    exists.then(String::new)
}

/// A field after the program's name, which may have blanks: the state is field 0, the parent field 1.
fn stat_field(stat: &str, number: usize) -> Option<&str> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(number)
}

/// Whether the reader of standard output has closed it.
fn is_output_closed() -> bool {
    let output = std::io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    let no_wait = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    match poll(&mut polled, Some(&no_wait)) {
        Ok(_) => polled[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::HUP),
        Err(_) => false,
    }
}
