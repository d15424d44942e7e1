//! What has a host start `chorus`: our plugin, or the entries of `chorus init`. Where both are installed, the plugin's part does
//! nothing, so that there is one set of tools, one of hooks, and one waker (PLG-05).

use super::target::{InitRoots, InitTarget, TargetLayout};
use super::{has_hooks, has_tools};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EntrySource {
    /// Our plugin
    Plugin,
    /// The entries of chorus init
    Init,
}

/// Whether `init` has installed the tools for the host with this instrument.
pub fn has_init_tools(instrument: &str) -> bool {
    let is_installed = |layout: &TargetLayout| {
        let tools = layout.tools.as_ref();
        tools.is_some_and(|(path, form)| has_tools(path, *form).unwrap_or(false))
    };
    list_layouts(instrument).iter().any(is_installed)
}

/// Whether `init` has installed the hook of this event for the host with this instrument.
pub fn has_init_hook(instrument: &str, event: &'static str) -> bool {
    let is_installed = |layout: &TargetLayout| {
        let hooks = layout.hooks.as_ref();
        hooks.is_some_and(|(path, _)| has_hooks(path, &[(event, None)]).unwrap_or(false))
    };
    list_layouts(instrument).iter().any(is_installed)
}

/// Where `init` installs for the host with this instrument.
fn list_layouts(instrument: &str) -> Vec<TargetLayout> {
    let targets: &[InitTarget] = match instrument {
        "cc-claude" => &[InitTarget::ClaudeUser, InitTarget::ClaudeProject],
        "codex" => &[InitTarget::Codex],
        name if name.starts_with("cursor") => &[InitTarget::Cursor],
        name if name.starts_with("openclaw") => &[InitTarget::Openclaw],
        _ => &[],
    };
    let Ok(roots) = InitRoots::find_roots() else {
        return Vec::new();
    };
    let layouts = targets.iter().map(|target| target.resolve_layout(&roots));
    layouts.collect()
}
