//! How a host calls us, and how we know our own lines in its files.

use super::target::TargetLayout;
use serde_json::Value;
use std::path::Path;

/// The name under which hosts know our tools.
pub const SERVER_NAME: &str = "chorus";

/// How a host calls us.
#[derive(Clone, Debug)]
pub struct InstalledProgram {
    pub program: String,
    /// Other credentials than the usual ones, if they were named.
    pub credentials: Option<String>,
    /// Whoever else reads the file may not have us.
    pub is_shared: bool,
}

impl InstalledProgram {
    /// What comes after the program for the tools.
    pub fn mcp_args(&self) -> Vec<String> {
        let named = self
            .credentials
            .iter()
            .flat_map(|file| ["--credentials".to_owned(), file.clone()]);
        ["mcp".to_owned()].into_iter().chain(named).collect()
    }

    /// The command line of a hook.
    pub fn hook_command(&self, event: &str, instrument: &str) -> String {
        let named = self
            .credentials
            .as_ref()
            .map(|file| format!(" --credentials {}", shell_quote(file)));
        let missing = if self.is_shared { " || true" } else { "" };
        format!(
            "{} hook {event} --instrument {instrument}{}{missing}",
            shell_quote(&self.program),
            named.unwrap_or_default()
        )
    }
}

/// `chorus` where a shell finds it as this very program, otherwise where it is: editors have another PATH than shells. In
/// files that others read too it is always the name.
pub fn program_path(layout: &TargetLayout) -> String {
    let name = SERVER_NAME.to_owned();
    let Ok(own) = std::env::current_exe().and_then(std::fs::canonicalize) else {
        return name;
    };
    let found = std::env::var_os("PATH").and_then(|path| {
        let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(SERVER_NAME));
        candidates
            .find(|place| place.is_file())
            .and_then(|place| std::fs::canonicalize(place).ok())
    });
    if layout.is_shared || found.as_deref() == Some(&own) {
        name
    } else {
        own.display().to_string()
    }
}

/// For a shell.
fn shell_quote(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn is_chorus(program: &str) -> bool {
    Path::new(program)
        .file_name()
        .is_some_and(|name| name == SERVER_NAME)
}

/// An entry of a host's servers that we wrote, or that does the same: `chorus … mcp …`.
pub fn is_our_server(entry: &Value) -> bool {
    let ours = entry["command"].as_str().is_some_and(is_chorus);
    ours && entry["args"]
        .as_array()
        .is_some_and(|args| args.iter().any(|arg| arg == "mcp"))
}

/// A hook's command that we wrote for this event.
pub fn is_our_hook(command: &str, event: &str) -> bool {
    chorus_arguments(command).is_some_and(|rest| {
        rest.starts_with(&format!("hook {event} ")) || rest == format!("hook {event}")
    })
}

/// A hook that somebody took from the page on coding agents: it does what ours would do.
pub fn is_manual_hook(command: &str) -> bool {
    let rest = chorus_arguments(command).unwrap_or_default();
    (rest.starts_with("advise ") || rest.starts_with("locks ")) && rest.contains("--hook")
}

/// What a command line that runs us says after our name.
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
    fn our_own_lines_are_known_and_others_are_not() {
        for program in ["chorus", "/opt/bin/chorus", "/a b/it's/chorus"] {
            let us = InstalledProgram {
                program: program.into(),
                credentials: Some("a b.json".into()),
                is_shared: false,
            };
            let line = us.hook_command("Stop", "cc-claude");
            assert!(
                line.ends_with(" hook Stop --instrument cc-claude --credentials 'a b.json'"),
                "{line}"
            );
            assert!(
                is_our_hook(&line, "Stop") && !is_our_hook(&line, "SessionStart"),
                "{line}"
            );
            assert!(is_our_server(
                &json!({ "command": program, "args": us.mcp_args() })
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
