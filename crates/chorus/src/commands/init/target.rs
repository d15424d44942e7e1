//! The supported hosts, and where each keeps its skills, tools and hooks.

use super::wake_entries::WakeChange;
use crate::fail::Fail;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum InitTarget {
    /// Claude Code, for you in every project
    ClaudeUser,
    /// Claude Code, for all users of this project
    ClaudeProject,
    /// Codex
    Codex,
    /// OpenClaw
    Openclaw,
    /// Cursor
    Cursor,
    /// The skill text alone, in this folder
    Local,
}

/// The format of a host's MCP server list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigForm {
    /// JSON, below these keys.
    Json(&'static [&'static str]),
    /// Codex's TOML, below `mcp_servers`.
    Toml,
}

/// How a host lists the commands of a hook event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookForm {
    /// In groups with a matcher, as Claude Code and Codex do.
    Grouped,
    /// One entry for each command, as Cursor does, with a version of the format.
    Flat,
}

/// One hook: the host's event, and a matcher for tools.
pub type HookEntry = (&'static str, Option<&'static str>);

/// The paths of a host's skill, tools and hooks.
#[derive(Clone, Debug)]
pub struct TargetLayout {
    pub skill: PathBuf,
    pub tools: Option<(PathBuf, ConfigForm)>,
    pub hooks: Option<(PathBuf, &'static [HookEntry])>,
    pub hook_form: HookForm,
    /// The instrument of the host's sessions.
    pub instrument: &'static str,
    /// Other users read the same files, so they must not contain anything of this machine.
    pub is_shared: bool,
    /// What `init` does to the entries that let a session be woken.
    pub wakes: WakeChange,
}

impl TargetLayout {
    /// Whether the hooks are what lets a session be woken; of Codex the tools are.
    pub fn has_json_wakes(&self) -> bool {
        !matches!(self.tools, Some((_, ConfigForm::Toml))) && self.hook_form == HookForm::Grouped
    }
}

/// The tools with which Claude Code edits files.
const CLAUDE_EDITS: Option<&str> = Some("Edit|MultiEdit|Write|NotebookEdit");
pub const CLAUDE_HOOKS: [HookEntry; 5] = [
    ("SessionStart", None),
    ("UserPromptSubmit", None),
    ("Stop", None),
    ("PreToolUse", CLAUDE_EDITS),
    ("PostToolUse", CLAUDE_EDITS),
];
pub const CODEX_HOOKS: [HookEntry; 4] = [
    ("SessionStart", None),
    ("UserPromptSubmit", None),
    ("Stop", None),
    ("PostToolUse", Some("apply_patch")),
];

const CURSOR_HOOKS: [HookEntry; 2] = [("sessionStart", None), ("stop", None)];

const CLAUDE_FOLDER_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// The two folders that contain all paths.
#[derive(Clone, Debug)]
pub struct InitRoots {
    pub home: PathBuf,
    pub working_folder: PathBuf,
}

impl InitRoots {
    pub fn find_roots() -> Result<Self, Fail> {
        let home = etcetera::home_dir()
            .map_err(|e| Fail::usage_error(format!("no home directory: {e}")))?;
        let working_folder = std::env::current_dir()
            .map_err(|e| Fail::usage_error(format!("no working directory: {e}")))?;
        Ok(Self {
            home,
            working_folder,
        })
    }

    /// The folder in an environment variable, else one in the home.
    fn folder_from_env(&self, variable: &str, name: &str) -> PathBuf {
        env_folder(variable).unwrap_or_else(|| self.home.join(name))
    }

    /// A path for people, with `~` for the home.
    pub fn display_path(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

/// The folder in an environment variable; an empty one counts as none.
fn env_folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).filter(|value| !value.is_empty())?;
    Some(PathBuf::from(folder))
}

/// Claude Code keeps its user settings in the folder that `CLAUDE_CONFIG_DIR` names, also when that is the usual one, and in the
/// home without the variable.
fn claude_user_config(roots: &InitRoots) -> PathBuf {
    let folder = env_folder(CLAUDE_FOLDER_VARIABLE).unwrap_or_else(|| roots.home.clone());
    folder.join(".claude.json")
}

impl InitTarget {
    pub fn resolve_layout(self, roots: &InitRoots) -> TargetLayout {
        let servers: &[&str] = &["mcpServers"];
        let host_layout = |folder: PathBuf, instrument| TargetLayout {
            skill: folder.join("skills/chorus"),
            tools: None,
            hooks: None,
            hook_form: HookForm::Grouped,
            instrument,
            is_shared: false,
            wakes: WakeChange::Keep,
        };
        match self {
            InitTarget::ClaudeUser => {
                let folder = roots.folder_from_env(CLAUDE_FOLDER_VARIABLE, ".claude");
                let config = claude_user_config(roots);
                let hooks = Some((folder.join("settings.json"), &CLAUDE_HOOKS[..]));
                TargetLayout {
                    tools: Some((config, ConfigForm::Json(servers))),
                    hooks,
                    ..host_layout(folder, "cc-claude")
                }
            }
            InitTarget::ClaudeProject => {
                let folder = roots.working_folder.join(".claude");
                let tools = Some((
                    roots.working_folder.join(".mcp.json"),
                    ConfigForm::Json(servers),
                ));
                let hooks = Some((folder.join("settings.json"), &CLAUDE_HOOKS[..]));
                TargetLayout {
                    tools,
                    hooks,
                    is_shared: true,
                    ..host_layout(folder, "cc-claude")
                }
            }
            InitTarget::Codex => {
                let folder = roots.folder_from_env("CODEX_HOME", ".codex");
                let tools = Some((folder.join("config.toml"), ConfigForm::Toml));
                let hooks = Some((folder.join("hooks.json"), &CODEX_HOOKS[..]));
                TargetLayout {
                    tools,
                    hooks,
                    ..host_layout(folder, "codex")
                }
            }
            InitTarget::Openclaw => {
                let folder = roots.folder_from_env("OPENCLAW_STATE_DIR", ".openclaw");
                let tools = Some((
                    folder.join("openclaw.json"),
                    ConfigForm::Json(&["mcp", "servers"]),
                ));
                TargetLayout {
                    tools,
                    ..host_layout(folder, "openclaw")
                }
            }
            InitTarget::Cursor => {
                let folder = roots.home.join(".cursor");
                TargetLayout {
                    tools: Some((folder.join("mcp.json"), ConfigForm::Json(servers))),
                    hooks: Some((folder.join("hooks.json"), &CURSOR_HOOKS[..])),
                    hook_form: HookForm::Flat,
                    ..host_layout(folder, "cursor")
                }
            }
            InitTarget::Local => TargetLayout {
                is_shared: true,
                ..host_layout(roots.working_folder.clone(), "cli")
            },
        }
    }

    pub fn target_name(self) -> &'static str {
        match self {
            InitTarget::ClaudeUser => "claude-user",
            InitTarget::ClaudeProject => "claude-project",
            InitTarget::Codex => "codex",
            InitTarget::Openclaw => "openclaw",
            InitTarget::Cursor => "cursor",
            InitTarget::Local => "local",
        }
    }
}
