//! Our entries in a host's JSON: put in and taken out with everything else, comments and order too, as it was.

use super::plan::wrong;
use super::program::{SERVER, Us, by_hand, our_hook, our_server};
use super::target::Hook;
use crate::fail::Fail;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{ParseOptions, json};
use std::path::Path;

/// How long a host waits for a hook, in seconds: ours ends far earlier by itself.
const TIMEOUT: usize = 10;

/// A configuration, open for editing.
pub struct Config<'a> {
    path: &'a Path,
    root: CstRootNode,
    top: CstObject,
}

impl<'a> Config<'a> {
    /// Hosts differ in what they forgive (OpenClaw reads JSON5), so comments, trailing commas and loose names are left
    /// alone; what no host can read is an error, and nothing is changed.
    pub fn parse(path: &'a Path, text: Option<&str>) -> Result<Self, Fail> {
        let text = text
            .filter(|text| !text.trim().is_empty())
            .unwrap_or("{\n}\n");
        let options = ParseOptions {
            allow_missing_commas: false,
            ..ParseOptions::default()
        };
        let broken = |e: &dyn std::fmt::Display| {
            wrong(
                path,
                format!("is not valid JSON ({e}); mend it first, nothing was changed"),
            )
        };
        let root = CstRootNode::parse(text.trim_start_matches('\u{feff}'), &options)
            .map_err(|e| broken(&e))?;
        let top = root
            .object_value()
            .ok_or_else(|| broken(&"not an object"))?;
        Ok(Self { path, root, top })
    }

    pub fn text(&self) -> String {
        self.root.to_string()
    }

    fn object(&self, inside: &CstObject, name: &str) -> Result<CstObject, Fail> {
        let odd = || {
            wrong(
                self.path,
                format!("\"{name}\" is not an object; nothing was changed"),
            )
        };
        inside.object_value_or_create(name).ok_or_else(odd)
    }

    /// The entry for our tools; one of another program under our name is an error.
    pub fn add_server(&self, keys: &[&str], us: &Us) -> Result<(), Fail> {
        let mut servers = self.top.clone();
        for key in keys {
            servers = self.object(&servers, key)?;
        }
        let Some(entry) = servers.get(SERVER) else {
            let (program, args) = (us.program.as_str(), us.args());
            servers.append(SERVER, json!({ "command": program, "args": args }));
            return Ok(());
        };
        let value = entry.to_serde_value().unwrap_or_default();
        if !our_server(&value) {
            let why = format!(
                "already has a server \"{SERVER}\" that is not ours; rename it first, nothing was changed"
            );
            return Err(wrong(self.path, why));
        }
        // What its owner added to it stays; only where we are may have changed, and who we are if that was said.
        let set = |name: &str, value: CstInputValue| {
            if let Some(property) = entry.object_value().and_then(|entry| entry.get(name)) {
                property.set_value(value);
            }
        };
        if value["command"] != us.program.as_str() {
            set("command", us.program.as_str().into());
        }
        if us.credentials.is_some() && value["args"] != serde_json::json!(us.args()) {
            set("args", us.args().into());
        }
        Ok(())
    }

    pub fn has_server(&self, keys: &[&str]) -> bool {
        let servers = keys
            .iter()
            .try_fold(self.top.clone(), |inside, key| inside.object_value(key));
        let entry = servers
            .and_then(|servers| servers.get(SERVER))
            .and_then(|entry| entry.to_serde_value());
        entry.is_some_and(|entry| our_server(&entry))
    }

    /// Takes our entry out, and the objects around it that are empty without it.
    pub fn remove_server(&self, keys: &[&str]) {
        if !self.has_server(keys) {
            return;
        }
        let mut around = vec![self.top.clone()];
        for key in keys {
            around.extend(around.last().and_then(|inside| inside.object_value(key)));
        }
        if let Some(entry) = around.last().and_then(|servers| servers.get(SERVER)) {
            entry.remove();
        }
        for (inside, key) in around.iter().zip(keys).rev() {
            if let Some(property) = inside.get(key)
                && property
                    .object_value()
                    .is_some_and(|object| object.properties().is_empty())
            {
                property.remove();
            }
        }
    }

    pub fn add_hooks(&self, hooks: &[Hook], us: &Us, instrument: &str) -> Result<(), Fail> {
        let events = self.object(&self.top, "hooks")?;
        for (event, matcher) in hooks {
            let odd = || {
                wrong(
                    self.path,
                    format!("\"hooks.{event}\" is not a list; nothing was changed"),
                )
            };
            let groups = events.array_value_or_create(event).ok_or_else(odd)?;
            let line = us.hook(event, instrument);
            let ours: Vec<CstObject> = commands(&groups)
                .into_iter()
                .filter(|c| our_hook(&text_of(c), event))
                .collect();
            for command in &ours {
                if text_of(command) != line
                    && let Some(property) = command.get("command")
                {
                    property.set_value(line.as_str().into());
                }
            }
            if ours.is_empty()
                && !commands(&groups)
                    .iter()
                    .any(|command| by_hand(&text_of(command)))
            {
                groups.append(group(&line, *matcher));
            }
        }
        Ok(())
    }

    /// Which of these events have our hook, or one that does the same.
    pub fn has_hooks(&self, hooks: &[Hook]) -> bool {
        hooks.iter().all(|(event, _)| {
            let groups = self
                .top
                .object_value("hooks")
                .and_then(|events| events.array_value(event));
            let known = |command: CstObject| {
                our_hook(&text_of(&command), event) || by_hand(&text_of(&command))
            };
            groups.is_some_and(|groups| commands(&groups).into_iter().any(known))
        })
    }

    /// Takes our hooks out, and what is empty without them.
    pub fn remove_hooks(&self) {
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
                let Some(list) = group
                    .as_object()
                    .and_then(|group| group.array_value("hooks"))
                else {
                    continue;
                };
                let before = list.elements().len();
                for command in list.elements() {
                    if command
                        .as_object()
                        .is_some_and(|command| our_hook(&text_of(&command), &event))
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

    /// Whether nothing is left: then the file was ours alone.
    pub fn is_empty(&self) -> bool {
        self.top.properties().is_empty()
            && !self.text().contains("//")
            && !self.text().contains("/*")
    }
}

fn group(line: &str, matcher: Option<&str>) -> CstInputValue {
    let run = json!({ "type": "command", "command": line, "timeout": TIMEOUT });
    match matcher {
        Some(matcher) => json!({ "matcher": matcher, "hooks": [run] }),
        None => json!({ "hooks": [run] }),
    }
}

/// The commands of an event, whatever else stands between them.
fn commands(groups: &CstArray) -> Vec<CstObject> {
    let groups = groups
        .elements()
        .into_iter()
        .filter_map(|group| group.as_object()?.array_value("hooks"));
    groups
        .flat_map(|list| list.elements())
        .filter_map(|command| command.as_object())
        .collect()
}

fn text_of(command: &CstObject) -> String {
    let value = command
        .get("command")
        .and_then(|property| property.to_serde_value());
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
