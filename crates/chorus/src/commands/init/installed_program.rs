//! The command lines by which a host runs `chorus`, and how to recognise them in its files.

use super::program_copy::{copy_path, copy_program, is_transient};
use super::target::TargetLayout;
use crate::fail::Fail;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The name of our MCP server in a host's configuration.
pub const SERVER_NAME: &str = "chorus";
const CREDENTIALS_OPTION: &str = "--credentials";

/// How a host runs `chorus`.
#[derive(Clone, Debug)]
pub struct InstalledProgram {
    pub program: String,
    /// The credential file, as an absolute path; none in files that other users read.
    pub credentials: Option<String>,
    /// The user named the file, so that it replaces one in an installed entry.
    pub is_explicit: bool,
    /// Other users read the same file and may not have `chorus` installed.
    pub is_shared: bool,
}

impl InstalledProgram {
    /// The arguments of the MCP server.
    pub fn mcp_args(&self) -> Vec<String> {
        let credentials_args = self
            .credentials
            .iter()
            .flat_map(|file| [CREDENTIALS_OPTION.to_owned(), file.clone()]);
        ["mcp".to_owned()]
            .into_iter()
            .chain(credentials_args)
            .collect()
    }

    /// The arguments for an installed MCP server: what its user added stays.
    pub fn update_mcp_args(&self, installed: &[String]) -> Vec<String> {
        let mut args = installed.to_vec();
        let Some(file) = &self.credentials else {
            return args;
        };
        match args.iter().position(|arg| arg == CREDENTIALS_OPTION) {
            Some(at) if self.is_explicit => {
                args.drain(at + 1..args.len().min(at + 2));
                args.insert(at + 1, file.clone());
            }
            Some(_) => {}
            None => args.extend([CREDENTIALS_OPTION.to_owned(), file.clone()]),
        }
        args
    }

    /// The command line for an installed hook: a credential file that was named before stays unless another is named.
    pub fn update_hook(&self, event: &str, instrument: &str, installed: &str) -> String {
        let named = installed.split_once(&format!(" {CREDENTIALS_OPTION} "));
        match named.filter(|_| self.credentials.is_some() && !self.is_explicit) {
            Some((_, file)) => format!(
                "{} hook {event} --instrument {instrument} {CREDENTIALS_OPTION} {file}",
                shell_quote(&self.program)
            ),
            None => self.hook_command(event, instrument),
        }
    }

    /// The command line of a hook that waits for mail.
    pub fn wake_command(&self) -> String {
        let credentials_args = self
            .credentials
            .as_ref()
            .map(|file| format!(" {CREDENTIALS_OPTION} {}", shell_quote(file)));
        format!(
            "{} wake --once --from init{}",
            shell_quote(&self.program),
            credentials_args.unwrap_or_default()
        )
    }

    /// The same for an installed one: a credential file that was named before stays unless another is named.
    pub fn update_wake(&self, installed: &str) -> String {
        let named = installed.split_once(&format!(" {CREDENTIALS_OPTION} "));
        match named.filter(|_| self.credentials.is_some() && !self.is_explicit) {
            Some((_, file)) => format!(
                "{} wake --once --from init {CREDENTIALS_OPTION} {file}",
                shell_quote(&self.program)
            ),
            None => self.wake_command(),
        }
    }

    /// The command line of a hook.
    pub fn hook_command(&self, event: &str, instrument: &str) -> String {
        let credentials_args = self
            .credentials
            .as_ref()
            .map(|file| format!(" {CREDENTIALS_OPTION} {}", shell_quote(file)));
        let ignore_failure = if self.is_shared { " || true" } else { "" };
        format!(
            "{} hook {event} --instrument {instrument}{}{ignore_failure}",
            shell_quote(&self.program),
            credentials_args.unwrap_or_default()
        )
    }
}

/// The name `chorus` if the PATH leads to this program, else its absolute path, because editors may have another PATH. In
/// shared files it is always the name. A program in a cache is copied, and the path is that of the copy (PKG-10).
pub fn install_program(layout: &TargetLayout) -> Result<String, Fail> {
    let name = SERVER_NAME.to_owned();
    let Ok(own_path) = std::env::current_exe().and_then(std::fs::canonicalize) else {
        return Ok(name);
    };
    if layout.is_shared {
        return Ok(name);
    }
    if is_transient(&own_path) {
        let copy = copy_path()?;
        copy_program(&own_path, &copy)?;
        return Ok(copy.display().to_string());
    }
    let found = find_on_path(SERVER_NAME).and_then(|path| std::fs::canonicalize(path).ok());
    match found.as_deref() == Some(&own_path) {
        true => Ok(name),
        false => Ok(own_path.display().to_string()),
    }
}

/// Quotes an argument for a shell.
fn shell_quote(arg: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    if arg.chars().all(is_plain) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', "'\\''"))
    }
}

fn is_chorus(program: &str) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == SERVER_NAME)
}

/// Whether a server entry is ours, or does the same: `chorus … mcp …`.
pub fn is_our_server(entry: &Value) -> bool {
    let ours = entry["command"].as_str().is_some_and(is_chorus);
    ours && entry["args"]
        .as_array()
        .is_some_and(|args| args.iter().any(|arg| arg == "mcp"))
}

/// Whether a hook command is ours for this event.
pub fn is_our_hook(command: &str, event: &str) -> bool {
    chorus_arguments(command).is_some_and(|rest| {
        rest.starts_with(&format!("hook {event} ")) || rest == format!("hook {event}")
    })
}

/// Whether a hook command is ours and waits for mail.
pub fn is_our_wake(command: &str) -> bool {
    chorus_arguments(command).is_some_and(|rest| rest.starts_with("wake --once"))
}

/// Whether a hook was copied from docs/agents.md: it does the same as ours.
pub fn is_manual_hook(command: &str) -> bool {
    let rest = chorus_arguments(command).unwrap_or_default();
    (rest.starts_with("advise ") || rest.starts_with("locks ")) && rest.contains("--hook")
}

/// The program of a command line that runs `chorus`.
pub fn chorus_program(command: &str) -> Option<String> {
    let program = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("' ")?.0,
        None => command.split_once(' ')?.0,
    };
    is_chorus(program).then(|| program.to_owned())
}

/// The first program of that name on the PATH.
pub fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Whether a host that has this PATH can run the program: a name on the PATH, or a file.
pub fn is_runnable(program: &str) -> bool {
    match program.contains('/') {
        true => is_executable(Path::new(program)),
        false => find_on_path(program).is_some_and(|path| is_executable(&path)),
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The arguments of a command line that runs `chorus`.
fn chorus_arguments(command: &str) -> Option<&str> {
    let (program, rest) = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("' ")?,
        None => command.split_once(' ')?,
    };
    is_chorus(program).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn our_entries_are_recognised_and_others_are_not() {
        for program in ["chorus", "/opt/bin/chorus", "/a b/it's/chorus"] {
            let installed = InstalledProgram {
                program: program.into(),
                credentials: Some("a b.json".into()),
                is_explicit: true,
                is_shared: false,
            };
            let line = installed.hook_command("Stop", "cc-claude");
            assert!(
                line.ends_with(" hook Stop --instrument cc-claude --credentials 'a b.json'"),
                "{line}"
            );
            assert!(
                is_our_hook(&line, "Stop") && !is_our_hook(&line, "SessionStart"),
                "{line}"
            );
            assert!(is_our_server(
                &json!({ "command": program, "args": installed.mcp_args() })
            ));
        }
        for other in [
            "chorus-lint hook Stop",
            "echo chorus hook Stop",
            "chorus hooked Stop",
            "/chorus/x hook Stop",
        ] {
            assert!(!is_our_hook(other, "Stop"), "{other}");
        }
        for other in [
            json!({ "url": "https://a.example/mcp" }),
            json!({ "command": "chorus", "args": ["sing"] }),
        ] {
            assert!(!is_our_server(&other));
        }
        assert!(
            is_manual_hook("chorus advise --hook --instrument cc-claude")
                && !is_manual_hook("chorus advise hi")
        );
    }
}
