//! Reads the input of an edit hook (Claude Code and compatible editors): one JSON object about the tool call.

use super::frame_context::{SenderArgs, parse_ident};
use crate::fail::Fail;
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Max bytes of the hook's input: enough for the largest file that a tool writes.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

/// A file that a session is about to change, or has changed.
#[derive(Debug, PartialEq, Eq)]
pub struct FileEdit {
    pub session: String,
    pub file: String,
}

#[derive(Deserialize)]
struct EditHookInput {
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    cwd: String,
    tool_input: ToolInput,
}

#[derive(Deserialize)]
struct ToolInput {
    #[serde(alias = "notebook_path")]
    file_path: Option<String>,
    /// The patch, for a tool that takes one.
    #[serde(alias = "patch", alias = "input")]
    command: Option<Value>,
}

impl ToolInput {
    /// The file, or the first one in a patch of Codex.
    fn edited_file(self) -> Option<String> {
        let Some(Value::String(patch)) = self.command.filter(|_| self.file_path.is_none()) else {
            return self.file_path;
        };
        let kinds = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
        patch
            .lines()
            .find_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)))
            .map(str::to_owned)
    }
}

impl FileEdit {
    /// Reads standard input. `None` for a tool that edits no file, and for unknown input, because a hook must not fail.
    pub fn read_stdin() -> Option<Self> {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        Self::parse_input(&text)
    }

    fn parse_input(text: &str) -> Option<Self> {
        let input: EditHookInput = serde_json::from_str(text).ok()?;
        let file = input.tool_input.edited_file()?;
        let file = Path::new(&input.cwd)
            .join(file)
            .to_string_lossy()
            .into_owned();
        Some(Self {
            session: input.session_id,
            file,
        })
    }

    /// Uses the editor's session, unless the arguments name one.
    pub fn fill_session(&self, sender_args: &mut SenderArgs) {
        if sender_args.session.is_none() {
            sender_args.session = parse_ident(&self.session).ok();
        }
    }
}

/// Prints an error but returns success: an unreachable hub or a missing registration must not stop the editor.
pub fn report_only(outcome: Result<(), Fail>) -> Result<(), Fail> {
    if let Err(fail) = outcome {
        fail.report(false);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_parsed_from_the_hook_input() {
        let relative = r#"{"session_id":"abc","cwd":"/repo","tool_name":"Edit","tool_input":{"file_path":"src/a \"b\".rs"}}"#;
        assert_eq!(
            FileEdit::parse_input(relative),
            Some(FileEdit {
                session: "abc".into(),
                file: "/repo/src/a \"b\".rs".into()
            })
        );
        let absolute = r#"{"session_id":"abc","cwd":"/repo","tool_input":{"file_path":"/repo/x","content":"y"}}"#;
        assert_eq!(FileEdit::parse_input(absolute).unwrap().file, "/repo/x");
        let patch = r#"{"session_id":"abc","cwd":"/repo","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: src/a.rs\n@@\n"}}"#;
        assert_eq!(FileEdit::parse_input(patch).unwrap().file, "/repo/src/a.rs");
        for other in ["", "{}", r#"{"tool_input":{"command":"ls"}}"#, "[1]"] {
            assert_eq!(FileEdit::parse_input(other), None, "{other}");
        }
    }
}
