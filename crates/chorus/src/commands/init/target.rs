//! The hosts that we know, and where each keeps its skills, its tools and its hooks.

use crate::fail::Fail;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Claude Code, for you in every project
    ClaudeUser,
    /// Claude Code, for everybody who works in this project
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

/// How a host writes down its MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON, below these keys.
    Json(&'static [&'static str]),
    /// Codex's TOML, below `mcp_servers`.
    Toml,
}

/// One hook: the host's event, and for which tools.
pub type Hook = (&'static str, Option<&'static str>);

/// Where a host keeps what.
#[derive(Clone, Debug)]
pub struct Layout {
    pub skill: PathBuf,
    pub tools: Option<(PathBuf, Form)>,
    pub hooks: Option<(PathBuf, &'static [Hook])>,
    /// What the host's sessions are called among frames.
    pub instrument: &'static str,
    /// Others read the same files, so that nothing of this machine may stand in them.
    pub for_others: bool,
}

/// What an agent with tools of the Claude Code kind edits files with.
const CLAUDE_EDITS: Option<&str> = Some("Edit|MultiEdit|Write|NotebookEdit");
const CLAUDE: [Hook; 5] = [
    ("SessionStart", None),
    ("UserPromptSubmit", None),
    ("Stop", None),
    ("PreToolUse", CLAUDE_EDITS),
    ("PostToolUse", CLAUDE_EDITS),
];
const CODEX: [Hook; 4] = [
    ("SessionStart", None),
    ("UserPromptSubmit", None),
    ("Stop", None),
    ("PostToolUse", Some("apply_patch")),
];

/// The two roots below which everything lies.
#[derive(Clone, Debug)]
pub struct Roots {
    pub home: PathBuf,
    pub here: PathBuf,
}

impl Roots {
    pub fn find() -> Result<Self, Fail> {
        let home =
            etcetera::home_dir().map_err(|e| Fail::usage(format!("no home directory: {e}")))?;
        let here = std::env::current_dir()
            .map_err(|e| Fail::usage(format!("no working directory: {e}")))?;
        Ok(Self { home, here })
    }

    /// The folder that a variable names, else one below the home.
    fn named(&self, variable: &str, name: &str) -> PathBuf {
        let named = std::env::var_os(variable).filter(|value| !value.is_empty());
        named.map_or_else(|| self.home.join(name), PathBuf::from)
    }

    /// A path as people write it.
    pub fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

impl Target {
    pub fn layout(self, roots: &Roots) -> Layout {
        let servers: &[&str] = &["mcpServers"];
        let host = |folder: PathBuf, instrument| Layout {
            skill: folder.join("skills/chorus"),
            tools: None,
            hooks: None,
            instrument,
            for_others: false,
        };
        match self {
            Target::ClaudeUser => {
                let folder = roots.named("CLAUDE_CONFIG_DIR", ".claude");
                let moved = folder != roots.home.join(".claude");
                let config = if moved {
                    folder.join(".claude.json")
                } else {
                    roots.home.join(".claude.json")
                };
                let hooks = Some((folder.join("settings.json"), &CLAUDE[..]));
                Layout {
                    tools: Some((config, Form::Json(servers))),
                    hooks,
                    ..host(folder, "cc-claude")
                }
            }
            Target::ClaudeProject => {
                let folder = roots.here.join(".claude");
                let tools = Some((roots.here.join(".mcp.json"), Form::Json(servers)));
                let hooks = Some((folder.join("settings.json"), &CLAUDE[..]));
                Layout {
                    tools,
                    hooks,
                    for_others: true,
                    ..host(folder, "cc-claude")
                }
            }
            Target::Codex => {
                let folder = roots.named("CODEX_HOME", ".codex");
                let tools = Some((folder.join("config.toml"), Form::Toml));
                let hooks = Some((folder.join("hooks.json"), &CODEX[..]));
                Layout {
                    tools,
                    hooks,
                    ..host(folder, "codex")
                }
            }
            Target::Openclaw => {
                let folder = roots.named("OPENCLAW_STATE_DIR", ".openclaw");
                let tools = Some((
                    folder.join("openclaw.json"),
                    Form::Json(&["mcp", "servers"]),
                ));
                Layout {
                    tools,
                    ..host(folder, "openclaw")
                }
            }
            Target::Cursor => {
                let folder = roots.home.join(".cursor");
                let tools = Some((folder.join("mcp.json"), Form::Json(servers)));
                Layout {
                    tools,
                    ..host(folder, "cursor")
                }
            }
            Target::Local => Layout {
                for_others: true,
                ..host(roots.here.clone(), "cli")
            },
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Target::ClaudeUser => "claude-user",
            Target::ClaudeProject => "claude-project",
            Target::Codex => "codex",
            Target::Openclaw => "openclaw",
            Target::Cursor => "cursor",
            Target::Local => "local",
        }
    }
}
