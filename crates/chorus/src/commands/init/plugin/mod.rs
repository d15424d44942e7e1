//! `chorus init --target plugin`: writes the plugin folder for every host, from the texts and tables that `init` installs (PLG-01).

mod user_options;

use super::change_plan::{ChangePlan, file_error, read_file};
use super::install_link::LinkHost;
use super::json_config::HOOK_TIMEOUT_SECONDS;
use super::skill::{HubNames, SkillLanguage, skill_files};
use super::target::{CLAUDE_HOOKS, CODEX_HOOKS, HookEntry};
use crate::{cli::CommonArgs, fail::Fail, output};
use serde_json::{Map, Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
pub use user_options::read_options;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const NAME: &str = "chorus";
const DESCRIPTION: &str = "Talk to other agents through a Chorus hub: skill, tools, hooks, and mail that wakes an idle session";
const AUTHOR: &str = "The Chorus authors";
const LICENSE: &str = "Apache-2.0";
/// The launcher, which finds the program.
const LAUNCHER_FILE: &str = "bin/chorus";
/// How Claude Code and Codex name the folder of a plugin in a command line.
const CLAUDE_LAUNCHER: &str = r#""${CLAUDE_PLUGIN_ROOT}/bin/chorus""#;
const CODEX_LAUNCHER: &str = r#""${PLUGIN_ROOT:-$CLAUDE_PLUGIN_ROOT}/bin/chorus""#;
/// The arguments of the tools in every host.
const MCP_ARGS: [&str; 3] = ["mcp", "--from", "plugin"];

/// Writes the folder. One with anything else in it is refused.
pub fn write_plugin(common: &CommonArgs, folder: &Path) -> Result<(), Fail> {
    check_folder(folder)?;
    let mut plan = ChangePlan::default();
    for (name, text) in plugin_files()? {
        let path = folder.join(name);
        plan.add_change(&path, read_file(&path)?, Some(text));
    }
    plan.apply_or_undo(|| make_executable(&folder.join(LAUNCHER_FILE)))?;
    let output = json!({ "target": "plugin", "folder": folder, "version": VERSION, "changed": plan.changed_paths() });
    output::print_result(common.json, &output, || {
        format!(
            "{} Plugin {VERSION} written to {}",
            output::paint_text(output::GOOD_STYLE, "✓"),
            folder.display()
        )
    });
    Ok(())
}

/// A new or empty folder, or our plugin.
fn check_folder(folder: &Path) -> Result<(), Fail> {
    let Ok(mut entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    let manifest = read_file(&folder.join("plugin.json"))?.unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    if entries.next().is_none() || manifest["name"] == NAME {
        return Ok(());
    }
    Err(file_error(
        folder,
        "has files that are not our plugin; name another folder, nothing was changed",
    ))
}

fn make_executable(path: &Path) -> Result<(), Fail> {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).map_err(|e| file_error(path, e))
}

/// The files of the folder.
fn plugin_files() -> Result<Vec<(String, String)>, Fail> {
    let mut files = Vec::new();
    for (name, value) in [
        ("plugin.json", portable_manifest()),
        ("mcp.json", portable_servers()),
        (".claude-plugin/plugin.json", claude_manifest()),
        (".codex-plugin/plugin.json", codex_manifest()),
        (".mcp.codex.json", codex_servers()),
        (
            "hooks/hooks.json",
            list_hooks(&CLAUDE_HOOKS, CLAUDE_LAUNCHER, "cc-claude"),
        ),
        (
            "hooks/codex.json",
            list_hooks(&CODEX_HOOKS, CODEX_LAUNCHER, "codex"),
        ),
        ("monitors/monitors.json", list_monitors()),
    ] {
        files.push((name.to_owned(), format!("{value:#}\n")));
    }
    let fill = |text: &str| {
        text.replace("{{VERSION}}", VERSION)
            .replace("{{CURSOR_LINK}}", &LinkHost::Cursor.format_link())
            .replace("{{VSCODE_LINK}}", &LinkHost::Vscode.format_link())
    };
    files.push((LAUNCHER_FILE.to_owned(), fill(include_str!("launcher.sh"))));
    files.push(("README.md".to_owned(), fill(include_str!("readme.md"))));
    let hub = HubNames::unknown();
    let skill = skill_files(SkillLanguage::En, &hub).into_iter();
    files.extend(skill.map(|(name, text)| (format!("skills/chorus/{name}"), text)));
    Ok(files)
}

/// The manifest of Agent Plugins 1.0.0, a closed schema.
fn portable_manifest() -> Value {
    let mut manifest = base_manifest();
    manifest["$schema"] = json!("https://agent-plugins.org/schemas/1.0.0/plugin.schema.json");
    manifest
}

fn base_manifest() -> Value {
    json!({ "name": NAME, "version": VERSION, "description": DESCRIPTION, "author": { "name": AUTHOR }, "license": LICENSE,
        "keywords": ["agents", "messages", "mcp"] })
}

/// The tools, with a command below the folder: an absolute path is invalid there (PLG-03).
fn portable_servers() -> Value {
    json!({ "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
        "mcpServers": { NAME: { "type": "stdio", "command": format!("./{LAUNCHER_FILE}"), "args": MCP_ARGS } } })
}

fn claude_manifest() -> Value {
    let mut manifest = base_manifest();
    let command = format!("${{CLAUDE_PLUGIN_ROOT}}/{LAUNCHER_FILE}");
    let environment = user_options::option_environment();
    manifest["mcpServers"] =
        json!({ NAME: { "command": command, "args": MCP_ARGS, "env": environment } });
    manifest["userConfig"] = user_options::describe_options();
    manifest
}

fn codex_manifest() -> Value {
    let mut manifest = base_manifest();
    manifest["skills"] = json!("./skills/");
    manifest["hooks"] = json!("./hooks/codex.json");
    manifest["mcpServers"] = json!("./.mcp.codex.json");
    manifest["interface"] = json!({ "displayName": "Chorus", "shortDescription": "Messages between agents",
        "longDescription": DESCRIPTION, "developerName": AUTHOR, "category": "Productivity" });
    manifest
}

fn codex_servers() -> Value {
    json!({ "mcpServers": { NAME: { "command": format!("./{LAUNCHER_FILE}"), "args": MCP_ARGS } } })
}

/// The hooks that `init` installs. None of them fails: an older program on the PATH may not know `--from`.
fn list_hooks(hooks: &[HookEntry], launcher: &str, instrument: &str) -> Value {
    let mut events = Map::new();
    for (event, matcher) in hooks {
        let command =
            format!("{launcher} hook {event} --instrument {instrument} --from plugin || true");
        let mut group = json!({ "hooks": [{ "type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS }] });
        if let Some(matcher) = matcher {
            group["matcher"] = json!(matcher);
        }
        events.insert((*event).to_owned(), json!([group]));
    }
    json!({ "hooks": events })
}

/// The monitor that starts a turn of an idle session of Claude Code.
fn list_monitors() -> Value {
    json!([{ "name": "chorus-mail", "command": format!("{CLAUDE_LAUNCHER} wake --lines --from plugin"),
        "description": "New Chorus messages for this agent" }])
}
