//! Adds and removes our entries in a host's JSON configuration; comments and order of everything else are kept.

use super::change_plan::file_error;
use super::installed_program::{
    InstalledProgram, SERVER_NAME, chorus_program, is_manual_hook, is_our_hook, is_our_server,
    is_our_wake,
};
use super::target::{HookEntry, HookForm};
use crate::fail::Fail;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::{ParseOptions, json};
use std::path::Path;

/// How long a host waits for a hook, in seconds; ours ends much earlier by itself.
pub const HOOK_TIMEOUT_SECONDS: usize = 10;

/// A configuration, open for editing.
pub struct JsonConfig<'a> {
    pub(super) path: &'a Path,
    root: CstRootNode,
    pub(super) top: CstObject,
}

impl<'a> JsonConfig<'a> {
    /// Parses a configuration. Hosts differ in what they accept (OpenClaw reads JSON5), so comments, trailing commas and
    /// unquoted names are allowed. Anything else is an error, and nothing is changed.
    pub fn parse(path: &'a Path, text: Option<&str>) -> Result<Self, Fail> {
        let text = text
            .filter(|text| !text.trim().is_empty())
            .unwrap_or("{\n}\n");
        let options = ParseOptions {
            allow_missing_commas: false,
            ..ParseOptions::default()
        };
        let syntax_error = |e: &dyn std::fmt::Display| {
            file_error(
                path,
                format!("is not valid JSON ({e}); mend it first, nothing was changed"),
            )
        };
        let root = CstRootNode::parse(text.trim_start_matches('\u{feff}'), &options)
            .map_err(|e| syntax_error(&e))?;
        let top = root
            .object_value()
            .ok_or_else(|| syntax_error(&"not an object"))?;
        Ok(Self { path, root, top })
    }

    pub fn to_text(&self) -> String {
        self.root.to_string()
    }

    pub(super) fn object_or_create(
        &self,
        parent: &CstObject,
        name: &str,
    ) -> Result<CstObject, Fail> {
        let type_error = || {
            file_error(
                self.path,
                format!("\"{name}\" is not an object; nothing was changed"),
            )
        };
        parent.object_value_or_create(name).ok_or_else(type_error)
    }

    /// Adds our server entry; an entry of another program under our name is an error.
    pub fn add_server(&self, keys: &[&str], installed: &InstalledProgram) -> Result<(), Fail> {
        let mut servers = self.top.clone();
        for key in keys {
            servers = self.object_or_create(&servers, key)?;
        }
        let Some(entry) = servers.get(SERVER_NAME) else {
            let program = installed.program.as_str();
            let args = installed.mcp_args();
            servers.append(SERVER_NAME, json!({ "command": program, "args": args }));
            return Ok(());
        };
        let value = entry.to_serde_value().unwrap_or_default();
        if !is_our_server(&value) {
            let message = format!(
                "already has a server \"{SERVER_NAME}\" that is not ours; rename it first, nothing was changed"
            );
            return Err(file_error(self.path, message));
        }
        // Keep what the user added to the entry. Update only the program's path, and the credentials if given.
        let update_property = |name: &str, value: CstInputValue| {
            if let Some(property) = entry.object_value().and_then(|entry| entry.get(name)) {
                property.set_value(value);
            }
        };
        if value["command"] != installed.program.as_str() {
            update_property("command", installed.program.as_str().into());
        }
        let args: Vec<String> = serde_json::from_value(value["args"].clone()).unwrap_or_default();
        let updated = installed.update_mcp_args(&args);
        if updated != args {
            update_property("args", updated.into());
        }
        Ok(())
    }

    pub fn has_server(&self, keys: &[&str]) -> bool {
        self.server_program(keys).is_some()
    }

    /// The program that our entry runs.
    pub fn server_program(&self, keys: &[&str]) -> Option<String> {
        let servers = keys
            .iter()
            .try_fold(self.top.clone(), |parent, key| parent.object_value(key));
        let entry = servers?.get(SERVER_NAME)?.to_serde_value()?;
        is_our_server(&entry).then(|| entry["command"].as_str().unwrap_or_default().to_owned())
    }

    /// Removes our entry, and the objects around it that become empty.
    pub fn remove_server(&self, keys: &[&str]) {
        if !self.has_server(keys) {
            return;
        }
        let mut ancestors = vec![self.top.clone()];
        for key in keys {
            ancestors.extend(ancestors.last().and_then(|parent| parent.object_value(key)));
        }
        if let Some(entry) = ancestors
            .last()
            .and_then(|servers| servers.get(SERVER_NAME))
        {
            entry.remove();
        }
        for (parent, key) in ancestors.iter().zip(keys).rev() {
            if let Some(property) = parent.get(key)
                && property
                    .object_value()
                    .is_some_and(|object| object.properties().is_empty())
            {
                property.remove();
            }
        }
    }

    pub fn add_hooks(
        &self,
        hooks: &[HookEntry],
        installed: &InstalledProgram,
        instrument: &str,
        form: HookForm,
    ) -> Result<(), Fail> {
        if form == HookForm::Flat && self.top.get("version").is_none() {
            self.top.append("version", json!(1));
        }
        let events = self.object_or_create(&self.top, "hooks")?;
        for (event, matcher) in hooks {
            let type_error = || {
                file_error(
                    self.path,
                    format!("\"hooks.{event}\" is not a list; nothing was changed"),
                )
            };
            let groups = events.array_value_or_create(event).ok_or_else(type_error)?;
            let hook_command = installed.hook_command(event, instrument);
            let ours: Vec<CstObject> = hook_commands(&groups)
                .into_iter()
                .filter(|c| is_our_hook(&command_text(c), event))
                .collect();
            for command in &ours {
                let text = command_text(command);
                let updated = installed.update_hook(event, instrument, &text);
                if text != updated
                    && let Some(property) = command.get("command")
                {
                    property.set_value(updated.as_str().into());
                }
            }
            if ours.is_empty()
                && !hook_commands(&groups)
                    .iter()
                    .any(|command| is_manual_hook(&command_text(command)))
            {
                groups.append(match form {
                    HookForm::Grouped => hook_group(&hook_command, *matcher),
                    HookForm::Flat => {
                        json!({ "command": hook_command, "timeout": HOOK_TIMEOUT_SECONDS })
                    }
                });
            }
        }
        Ok(())
    }

    /// Whether all these events have our hook, or one that does the same.
    pub fn has_hooks(&self, hooks: &[HookEntry]) -> bool {
        hooks.iter().all(|(event, _)| {
            let groups = self
                .top
                .object_value("hooks")
                .and_then(|events| events.array_value(event));
            let is_known = |command: CstObject| {
                is_our_hook(&command_text(&command), event)
                    || is_manual_hook(&command_text(&command))
            };
            groups.is_some_and(|groups| hook_commands(&groups).into_iter().any(is_known))
        })
    }

    /// The programs that our hooks run.
    pub fn hook_programs(&self) -> Vec<String> {
        let Some(events) = self.top.object_value("hooks") else {
            return Vec::new();
        };
        let mut programs: Vec<String> = events
            .properties()
            .iter()
            .filter_map(|property| property.array_value())
            .flat_map(|groups| hook_commands(&groups))
            .filter_map(|command| chorus_program(&command_text(&command)))
            .collect();
        programs.sort();
        programs.dedup();
        programs
    }

    /// Removes our hooks, and what becomes empty.
    pub fn remove_hooks(&self) {
        self.remove_commands(|event, command| is_our_hook(command, event) || is_our_wake(command));
    }

    /// Removes the commands of hooks that `is_ours` says, and what becomes empty.
    pub(super) fn remove_commands(&self, is_ours: impl Fn(&str, &str) -> bool) {
        let Some(events) = self.top.object_value("hooks") else {
            return;
        };
        let mut removed = false;
        for property in events.properties() {
            let (Some(event), Some(groups)) = (property.decoded_name(), property.array_value())
            else {
                continue;
            };
            for group in groups.elements() {
                let Some(entry) = group.as_object() else {
                    continue;
                };
                let Some(list) = entry.array_value("hooks") else {
                    // Cursor lists the commands themselves.
                    if is_ours(&event, &command_text(&entry)) {
                        entry.remove();
                        removed = true;
                    }
                    continue;
                };
                let before = list.elements().len();
                for command in list.elements() {
                    if command
                        .as_object()
                        .is_some_and(|command| is_ours(&event, &command_text(&command)))
                    {
                        command.remove();
                    }
                }
                let emptied = list.elements().len() < before && list.elements().is_empty();
                removed |= list.elements().len() < before;
                if emptied {
                    group.remove();
                }
            }
            if removed && groups.elements().is_empty() {
                property.remove();
            }
        }
        if removed
            && events.properties().is_empty()
            && let Some(property) = self.top.get("hooks")
        {
            property.remove();
        }
    }

    /// Whether nothing but a version is left, so that the file contained only our entries.
    pub fn is_empty(&self) -> bool {
        let is_version = |property: &CstObjectProp| {
            property
                .decoded_name()
                .is_some_and(|name| name == "version")
        };
        self.top.properties().iter().all(is_version)
            && !self.to_text().contains("//")
            && !self.to_text().contains("/*")
    }
}

fn hook_group(command: &str, matcher: Option<&str>) -> CstInputValue {
    let hook = json!({ "type": "command", "command": command, "timeout": HOOK_TIMEOUT_SECONDS });
    match matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [hook] }),
        None => json!({ "hooks": [hook] }),
    }
}

/// The hook commands of an event.
pub(super) fn hook_commands(groups: &CstArray) -> Vec<CstObject> {
    let mut commands = Vec::new();
    for group in groups.elements() {
        let Some(group) = group.as_object() else {
            continue;
        };
        match group.array_value("hooks") {
            Some(list) => {
                commands.extend(list.elements().iter().filter_map(|hook| hook.as_object()))
            }
            // Cursor lists the commands themselves.
            None => commands.push(group),
        }
    }
    commands
}

pub(super) fn command_text(command: &CstObject) -> String {
    let value = command
        .get("command")
        .and_then(|property| property.to_serde_value());
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
