//! The entries by which a host lets `chorus wake` and `chorus mcp --wake` wake its sessions (D-115).

use super::change_plan::{file_error, read_file};
use super::installed_program::{InstalledProgram, is_our_wake};
use super::json_config::{JsonConfig, command_text, hook_commands};
use super::target::{ConfigForm, InitRoots, InitTarget, TargetLayout};
use super::toml_config::TomlConfig;
use crate::fail::Fail;
use jsonc_parser::cst::CstObject;
use jsonc_parser::json;

/// At the start of a session and whenever it would rest: each waits for mail beside the session, and the first message ends it.
const WAKE_EVENTS: [&str; 2] = ["SessionStart", "Stop"];
/// How long Claude Code lets such a hook wait, in seconds: a day. A later turn starts the next one.
const WAKE_TIMEOUT_SECONDS: usize = 86_400;
/// The name of our plugin in a host's settings, before the name of its marketplace.
const PLUGIN_PREFIX: &str = "chorus@";

/// What `init` does to these entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeChange {
    #[default]
    Keep,
    Add,
    Remove,
}

impl WakeChange {
    /// Claude Code marks what wakes it as not its user's, so it is on; Codex shows it as its user's turn, so it is off.
    pub fn for_target(target: InitTarget, wake: bool, no_wake: bool) -> Result<Self, Fail> {
        match target {
            InitTarget::ClaudeUser if no_wake => Ok(Self::Remove),
            InitTarget::ClaudeUser => Ok(Self::Add),
            InitTarget::Codex if wake => Ok(Self::Add),
            InitTarget::Codex if no_wake => Ok(Self::Remove),
            InitTarget::Codex => Ok(Self::Keep),
            InitTarget::ClaudeProject
            | InitTarget::Openclaw
            | InitTarget::Cursor
            | InitTarget::Local => match wake {
                true => Err(Fail::usage_error(
                    "init lets only claude-user and codex be woken; for others see: chorus wake --help",
                )),
                false => Ok(Self::Keep),
            },
        }
    }
}

/// Whether and by what an idle session of a host is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeState {
    /// By the hooks, or by the tools of Codex.
    Entries,
    /// By our plugin.
    Plugin,
    /// Some of the entries are missing.
    Partial,
    Off,
}

impl JsonConfig<'_> {
    pub fn change_wakes(
        &self,
        change: WakeChange,
        installed: &InstalledProgram,
    ) -> Result<(), Fail> {
        match change {
            WakeChange::Keep => Ok(()),
            WakeChange::Remove => {
                self.remove_commands(|_, command| is_our_wake(command));
                Ok(())
            }
            // The plugin wakes already.
            WakeChange::Add if self.has_plugin() => Ok(()),
            WakeChange::Add => self.add_wakes(installed),
        }
    }

    fn add_wakes(&self, installed: &InstalledProgram) -> Result<(), Fail> {
        let events = self.object_or_create(&self.top, "hooks")?;
        for event in WAKE_EVENTS {
            let type_error = || {
                file_error(
                    self.path,
                    format!("\"hooks.{event}\" is not a list; nothing was changed"),
                )
            };
            let groups = events.array_value_or_create(event).ok_or_else(type_error)?;
            let ours: Vec<CstObject> = hook_commands(&groups)
                .into_iter()
                .filter(|command| is_our_wake(&command_text(command)))
                .collect();
            for command in &ours {
                let text = command_text(command);
                let updated = installed.update_wake(&text);
                if text != updated
                    && let Some(property) = command.get("command")
                {
                    property.set_value(updated.as_str().into());
                }
            }
            if ours.is_empty() {
                let command = installed.wake_command();
                groups.append(json!({ "hooks": [{ "type": "command", "command": command,
                    "asyncRewake": true, "timeout": WAKE_TIMEOUT_SECONDS }] }));
            }
        }
        Ok(())
    }

    pub fn wake_state(&self) -> WakeState {
        let has_wake = |event: &&str| {
            let groups = self
                .top
                .object_value("hooks")
                .and_then(|events| events.array_value(event));
            let is_wake = |command: &CstObject| is_our_wake(&command_text(command));
            groups.is_some_and(|groups| hook_commands(&groups).iter().any(is_wake))
        };
        match WAKE_EVENTS.iter().filter(|event| has_wake(event)).count() {
            2 => WakeState::Entries,
            1 => WakeState::Partial,
            _ if self.has_plugin() => WakeState::Plugin,
            _ => WakeState::Off,
        }
    }

    /// Whether Claude Code runs our plugin.
    fn has_plugin(&self) -> bool {
        let plugins = self.top.get("enabledPlugins");
        let plugins = plugins.and_then(|property| property.to_serde_value());
        let is_enabled = |(name, value): (&String, &serde_json::Value)| {
            name.starts_with(PLUGIN_PREFIX) && value == &serde_json::Value::Bool(true)
        };
        plugins
            .as_ref()
            .and_then(serde_json::Value::as_object)
            .is_some_and(|plugins| plugins.iter().any(is_enabled))
    }
}

/// What wakes an idle session of a host.
pub fn find_wake_state(layout: &TargetLayout) -> Result<WakeState, Fail> {
    match (&layout.tools, &layout.hooks) {
        (Some((config, ConfigForm::Toml)), _) => {
            let text = read_file(config)?;
            Ok(
                match TomlConfig::parse(config, text.as_deref())?.has_wake() {
                    true => WakeState::Entries,
                    false => WakeState::Off,
                },
            )
        }
        (_, Some((settings, _))) => {
            let text = read_file(settings)?;
            Ok(JsonConfig::parse(settings, text.as_deref())?.wake_state())
        }
        (_, None) => Ok(WakeState::Off),
    }
}

/// Whether a host runs our plugin.
pub fn has_plugin(layout: &TargetLayout) -> Result<bool, Fail> {
    match (&layout.tools, &layout.hooks) {
        (Some((config, ConfigForm::Toml)), _) => {
            let text = read_file(config)?;
            Ok(TomlConfig::parse(config, text.as_deref())?.has_plugin(PLUGIN_PREFIX))
        }
        (_, Some((settings, _))) => {
            let text = read_file(settings)?;
            Ok(JsonConfig::parse(settings, text.as_deref())?.has_plugin())
        }
        (_, None) => Ok(false),
    }
}

/// Whether `init` lets Claude Code be woken: then the plugin does nothing, so that there is one waker.
pub fn has_init_wakes() -> bool {
    let Ok(roots) = InitRoots::find_roots() else {
        return false;
    };
    let layout = InitTarget::ClaudeUser.resolve_layout(&roots);
    matches!(find_wake_state(&layout), Ok(WakeState::Entries))
}
