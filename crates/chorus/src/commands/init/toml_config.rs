//! Adds and removes our entry in Codex's TOML configuration; everything else is kept.

use super::change_plan::file_error;
use super::installed_program::{InstalledProgram, SERVER_NAME, is_our_server};
use super::wake_entries::WakeChange;
use crate::fail::Fail;
use std::path::Path;
use toml_edit::{Array, DocumentMut, Item, Table, value};

const SERVERS_TABLE: &str = "mcp_servers";
/// The argument of `chorus mcp` by which it wakes Codex.
const WAKE_OPTION: &str = "--wake";

pub struct TomlConfig<'a> {
    path: &'a Path,
    document: DocumentMut,
}

impl<'a> TomlConfig<'a> {
    pub fn parse(path: &'a Path, text: Option<&str>) -> Result<Self, Fail> {
        let syntax_error = |e: toml_edit::TomlError| {
            let message = e.message().to_owned();
            file_error(
                path,
                format!("is not valid TOML ({message}); mend it first, nothing was changed"),
            )
        };
        let document = text.unwrap_or_default().parse().map_err(syntax_error)?;
        Ok(Self { path, document })
    }

    pub fn to_text(&self) -> String {
        self.document.to_string()
    }

    fn server_entry(&self) -> Option<&Item> {
        self.document.get(SERVERS_TABLE)?.get(SERVER_NAME)
    }

    pub fn has_server(&self) -> bool {
        self.server_program().is_some()
    }

    /// The program that our entry runs.
    pub fn server_program(&self) -> Option<String> {
        let entry = self.server_entry().filter(|entry| is_ours(entry))?;
        entry.get("command")?.as_str().map(str::to_owned)
    }

    /// How many hooks of this file Codex has been told to trust. Codex writes them down by file, event and position.
    pub fn count_trusted_hooks(&self, hooks_file: &Path) -> usize {
        let states = self
            .document
            .get("hooks")
            .and_then(|hooks| hooks.get("state"));
        let prefix = format!("{}:", hooks_file.display());
        let is_trusted = |(key, state): &(&str, &Item)| {
            key.starts_with(&prefix) && state.get("trusted_hash").is_some_and(Item::is_str)
        };
        states
            .and_then(Item::as_table_like)
            .map_or(0, |states| states.iter().filter(is_trusted).count())
    }

    pub fn add_server(&mut self, installed: &InstalledProgram) -> Result<(), Fail> {
        let ours = self.has_server();
        let exists = self.server_entry().is_some();
        let servers = self.document.entry(SERVERS_TABLE).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let type_error = || {
            file_error(
                self.path,
                format!("\"{SERVERS_TABLE}\" is not a table; nothing was changed"),
            )
        };
        let servers = servers.as_table_like_mut().ok_or_else(type_error)?;
        if exists && !ours {
            let message = format!(
                "already has a server \"{SERVER_NAME}\" that is not ours; rename it first, nothing was changed"
            );
            return Err(file_error(self.path, message));
        }
        if let Some(entry) = servers.get_mut(SERVER_NAME) {
            if entry["command"].as_str() != Some(&installed.program) {
                entry["command"] = value(&installed.program);
            }
            let args = text_items(entry.get("args"));
            let updated = installed.update_mcp_args(&args);
            if updated != args {
                entry["args"] = value(Array::from_iter(updated));
            }
            return Ok(());
        }
        let mut entry = Table::new();
        entry.insert("command", value(&installed.program));
        entry.insert("args", value(Array::from_iter(installed.mcp_args())));
        servers.insert(SERVER_NAME, Item::Table(entry));
        Ok(())
    }

    /// Whether our server wakes the threads that it serves.
    /// Whether a plugin whose name starts so is enabled.
    pub fn has_plugin(&self, prefix: &str) -> bool {
        let plugins = self.document.get("plugins").and_then(Item::as_table_like);
        let is_enabled = |(name, plugin): (&str, &Item)| {
            name.starts_with(prefix) && plugin.get("enabled").and_then(Item::as_bool) != Some(false)
        };
        plugins.is_some_and(|plugins| plugins.iter().any(is_enabled))
    }

    pub fn has_wake(&self) -> bool {
        let args = text_items(self.server_entry().and_then(|entry| entry.get("args")));
        self.has_server() && args.iter().any(|arg| arg == WAKE_OPTION)
    }

    pub fn change_wake(&mut self, change: WakeChange) {
        let wanted = match change {
            WakeChange::Keep => return,
            WakeChange::Add => true,
            WakeChange::Remove => false,
        };
        let servers = self.document.get_mut(SERVERS_TABLE);
        let Some(entry) = servers.and_then(|servers| servers.get_mut(SERVER_NAME)) else {
            return;
        };
        let mut args = text_items(entry.get("args"));
        if args.iter().any(|arg| arg == WAKE_OPTION) != wanted {
            args.retain(|arg| arg != WAKE_OPTION);
            args.extend(wanted.then(|| WAKE_OPTION.to_owned()));
            entry["args"] = value(Array::from_iter(args));
        }
        // Codex gives a server few variables, and its queue is in this folder.
        if wanted && let Some(home) = codex_home() {
            entry["env"]["CODEX_HOME"] = value(home);
        }
    }

    pub fn remove_server(&mut self) {
        if !self.has_server() {
            return;
        }
        let Some(servers) = self
            .document
            .get_mut(SERVERS_TABLE)
            .and_then(Item::as_table_like_mut)
        else {
            return;
        };
        servers.remove(SERVER_NAME);
        if servers.is_empty() {
            self.document.remove(SERVERS_TABLE);
        }
    }
}

/// The folder of Codex, if it is not the usual one.
fn codex_home() -> Option<String> {
    std::env::var("CODEX_HOME")
        .ok()
        .filter(|home| !home.is_empty())
}

fn text_items(list: Option<&Item>) -> Vec<String> {
    list.and_then(Item::as_array)
        .map(|items| {
            items
                .iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
}

fn is_ours(entry: &Item) -> bool {
    let command = entry
        .get("command")
        .and_then(Item::as_str)
        .unwrap_or_default();
    let args = text_items(entry.get("args"));
    is_our_server(&serde_json::json!({ "command": command, "args": args }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXISTING_CONFIG: &str = "# mine\nmodel = \"big\"   # the big one\n\n[mcp_servers.other]\ncommand = \"other\"\n\n[z]\nb = 1\na = 2\n";

    fn installed(program: &str) -> InstalledProgram {
        InstalledProgram {
            program: program.into(),
            credentials: None,
            is_explicit: false,
            is_shared: false,
        }
    }

    fn edited(text: &str, edit: impl Fn(&mut TomlConfig<'_>)) -> String {
        let mut config = TomlConfig::parse(Path::new("config.toml"), Some(text)).unwrap();
        edit(&mut config);
        config.to_text()
    }

    #[test]
    fn adding_and_removing_an_entry_keeps_the_rest() {
        for before in [EXISTING_CONFIG, "", "model = \"x\"\n"] {
            let with = edited(before, |config| {
                config.add_server(&installed("chorus")).unwrap()
            });
            assert!(
                with.contains("[mcp_servers.chorus]\ncommand = \"chorus\"\nargs = [\"mcp\"]"),
                "{with}"
            );
            assert_eq!(
                edited(&with, |config| config
                    .add_server(&installed("chorus"))
                    .unwrap()),
                with
            );
            assert_eq!(edited(&with, |config| config.remove_server()), before);
            let moved = edited(&with, |config| {
                config.add_server(&installed("/opt/chorus")).unwrap()
            });
            assert_eq!(
                moved,
                with.replace("command = \"chorus\"", "command = \"/opt/chorus\"")
            );
        }
    }

    #[test]
    fn foreign_or_invalid_entries_are_not_changed() {
        let theirs = "[mcp_servers.chorus]\nurl = \"https://choir.example/mcp\"\n";
        let mut config = TomlConfig::parse(Path::new("config.toml"), Some(theirs)).unwrap();
        assert!(config.add_server(&installed("chorus")).is_err());
        config.remove_server();
        assert_eq!(config.to_text(), theirs);
        assert!(TomlConfig::parse(Path::new("config.toml"), Some("a = = b")).is_err());
        let mut invalid =
            TomlConfig::parse(Path::new("config.toml"), Some("mcp_servers = 3\n")).unwrap();
        assert!(invalid.add_server(&installed("chorus")).is_err());
    }
}
