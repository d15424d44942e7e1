//! Which session a host runs: hooks are told by the host, and its MCP server finds it by the host's process.
//!
//! Not every host names the session in the environment of its MCP servers, and the name there is that of the session with which
//! the host started. A claim under another name would stop the model's own next edit.

use super::super::frame::frame_context::parse_ident;
use chorus_client::files::{IdentityFiles, atomic_file};
use chorus_wire::frame::ScopeIdent;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Max hosts whose session is remembered: more than run on one machine. Beyond it the oldest is forgotten.
const MAX_HOSTS: usize = 64;
/// Max steps from this process up to the host: a few shells and wrappers.
const MAX_STEPS: usize = 8;
/// A host runs a hook in a shell, which is not the host.
const SHELL_NAMES: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash"];

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedHosts {
    /// The host's process and its session, the one that was saved last at the end.
    hosts: Vec<(String, String)>,
}

fn hosts_file(files: &IdentityFiles) -> PathBuf {
    let name = files.state.file_name().unwrap_or_default();
    let name = name.to_string_lossy().replace("state", "hosts");
    files.state.with_file_name(name)
}

fn read_hosts(files: &IdentityFiles) -> SavedHosts {
    std::fs::read_to_string(hosts_file(files))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// Remembers the session of the host that runs this hook. A failure only costs the link to the MCP server.
pub fn save_host_session(files: &IdentityFiles, session: &ScopeIdent) {
    let Some(host) = find_host() else {
        return;
    };
    let mut saved = read_hosts(files);
    let entry = (host, session.to_string());
    if saved.hosts.contains(&entry) {
        return;
    }
    saved.hosts.retain(|(known, _)| *known != entry.0);
    saved.hosts.push(entry);
    let excess = saved.hosts.len().saturating_sub(MAX_HOSTS);
    saved.hosts.drain(..excess);
    let text = serde_json::to_string(&saved).unwrap_or_default();
    if let Err(error) = atomic_file::replace_file(&hosts_file(files), text.as_bytes()) {
        tracing::debug!("the session of the host was not saved: {error}");
    }
}

/// The session that the host of this process last named to a hook.
pub fn find_host_session(files: &IdentityFiles) -> Option<ScopeIdent> {
    let host = find_host()?;
    let saved = read_hosts(files);
    let (_, session) = saved.hosts.iter().find(|(known, _)| *known == host)?;
    parse_ident(session).ok()
}

/// The nearest process above this one that is no shell, with its start time, because process ids are used again.
fn find_host() -> Option<String> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MAX_STEPS {
        if pid <= 1 {
            return None;
        }
        let process = ProcessRecord::read(pid)?;
        if !SHELL_NAMES.contains(&process.name.as_str()) {
            return Some(format!("{pid} {}", process.started_at));
        }
        pid = process.parent;
    }
    None
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessRecord {
    parent: u32,
    name: String,
    started_at: String,
}

impl ProcessRecord {
    /// From `/proc` where there is one, else from `ps`.
    fn read(pid: u32) -> Option<Self> {
        if let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            return Self::parse_stat(&text);
        }
        let listing = std::process::Command::new("ps")
            .args(["-o", "ppid=,lstart=,comm=", "-p", &pid.to_string()])
            .output()
            .ok()?;
        Self::parse_listing(&String::from_utf8_lossy(&listing.stdout))
    }

    /// `pid (name) state ppid …`; the start time is the 22nd field. A name may contain spaces and parentheses.
    fn parse_stat(text: &str) -> Option<Self> {
        let (head, tail) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            name: name.to_owned(),
            started_at: (*fields.get(19)?).to_owned(),
        })
    }

    /// `ppid Mon Nov 16 20:05:12 2026 /bin/zsh`; a login shell has a dash before its name.
    fn parse_listing(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let (parent, rest) = fields.split_first()?;
        let (started_at, name) = rest.split_at_checked(5)?;
        let name = name.join(" ");
        let name = name.rsplit('/').next()?.trim_start_matches('-');
        Some(Self {
            parent: parent.parse().ok()?,
            name: name.to_owned(),
            started_at: started_at.join(" "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_from_proc_and_from_ps() {
        let stat = "7 (a (b) c) S 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 991 1 2 3\n";
        let expected = |parent, name: &str, started_at: &str| {
            Some(ProcessRecord {
                parent,
                name: name.to_owned(),
                started_at: started_at.to_owned(),
            })
        };
        assert_eq!(
            ProcessRecord::parse_stat(stat),
            expected(5, "a (b) c", "991")
        );
        let listing = "  501 Mon Nov 16 20:05:12 2026 -/bin/zsh\n";
        assert_eq!(
            ProcessRecord::parse_listing(listing),
            expected(501, "zsh", "Mon Nov 16 20:05:12 2026")
        );
        assert_eq!(ProcessRecord::parse_listing(""), None);
    }

    #[test]
    fn this_process_has_a_host() {
        assert!(ProcessRecord::read(std::process::id()).is_some());
    }
}
