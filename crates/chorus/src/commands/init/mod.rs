//! `chorus init`: installs the skill, the tools and the hooks for a host (SKL-32…34).

pub mod change_plan;
pub mod entry_source;
mod install_link;
pub mod installed_program;
mod json_config;
pub mod plugin;
pub mod program_copy;
pub mod skill;
pub mod target;
mod toml_config;
pub mod wake_entries;

use super::confirm;
use super::hook::ReportProgress;
use crate::confirmed_workspaces::ConfirmedWorkspaces;
use crate::{cli::CommonArgs, command_client, command_client::CommandClient, fail::Fail, output};
use change_plan::{ChangePlan, read_file};
use chorus_client::files::{AgentCredentials, HOME_FILE, WORKSPACE_FILE, atomic_file};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use install_link::LinkHost;
use installed_program::InstalledProgram;
use serde_json::json;
use skill::{HubNames, SkillLanguage};
use std::path::{Path, PathBuf};
use target::{ConfigForm, InitRoots, InitTarget, TargetLayout};
use wake_entries::{WakeChange, WakeState, find_wake_state};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The host to set up
    #[arg(long, value_name = "HOST", required_unless_present = "link")]
    target: Option<InitSubject>,
    /// The folder that is written, for --target plugin
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only print the link that installs the tools in this editor with a click
    #[arg(long, value_name = "EDITOR", conflicts_with = "target")]
    link: Option<LinkHost>,
    /// The language of the skill text
    #[arg(long, value_name = "TAG", default_value = "en")]
    lang: SkillLanguage,
    /// Do not install hooks
    #[arg(long)]
    no_hooks: bool,
    /// Let mail wake idle sessions; for Codex, where it is off because it shows as your own turn
    #[arg(long, conflicts_with = "no_wake")]
    wake: bool,
    /// Do not let mail wake idle sessions
    #[arg(long)]
    no_wake: bool,
}

/// What is set up: a host, or a plugin folder for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitSubject {
    Host(InitTarget),
    Plugin,
}

impl ValueEnum for InitSubject {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Host(InitTarget::ClaudeUser),
            Self::Host(InitTarget::ClaudeProject),
            Self::Host(InitTarget::Codex),
            Self::Host(InitTarget::Openclaw),
            Self::Host(InitTarget::Cursor),
            Self::Host(InitTarget::Local),
            Self::Plugin,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Host(target) => target.to_possible_value(),
            Self::Plugin => {
                Some(PossibleValue::new("plugin").help("The plugin for every host, written to DIR"))
            }
        }
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    if let Some(host) = args.link {
        let link = host.format_link();
        output::print_result(common.json, &json!({ "link": link }), || link.clone());
        return Ok(());
    }
    match (args.target, &args.folder) {
        (Some(InitSubject::Host(target)), None) => install_host(common, &args, target).await,
        (Some(InitSubject::Plugin), Some(folder)) => plugin::write_plugin(common, folder),
        (Some(InitSubject::Plugin), None) => Err(Fail::usage_error(
            "which folder? run: chorus init --target plugin DIR",
        )),
        (Some(InitSubject::Host(_)) | None, _) => {
            Err(Fail::usage_error("only --target plugin takes a folder"))
        }
    }
}

async fn install_host(common: &CommonArgs, args: &Args, target: InitTarget) -> Result<(), Fail> {
    let roots = InitRoots::find_roots()?;
    let mut layout = target.resolve_layout(&roots);
    layout.hooks = layout.hooks.filter(|_| !args.no_hooks);
    layout.wakes = WakeChange::for_target(target, args.wake, args.no_wake)?;
    let installed = installed_program(common, &layout)?;
    // From here on the identity is the one that the host will have.
    let common = &CommonArgs {
        credentials: installed.credentials.as_ref().map(PathBuf::from),
        ..common.clone()
    };
    let hub = hub_names(common).await;
    let mut plan = ChangePlan::default();
    skill::install_skill(&mut plan, &layout.skill, args.lang, &hub, !args.no_hooks)?;
    add_entries(&mut plan, &layout, &installed)?;
    plan.apply_or_undo(|| check_installed(&layout))?;
    confirm_project(target, &roots)?;
    let storage = create_storage(common)?;
    start_progress(common)?;
    let lang = args.lang.language_tag();
    let setup = HostSetup {
        target,
        lang,
        layout: &layout,
        plan: &plan,
        storage: &storage,
        program: &installed.program,
    };
    print_installed(common, &roots, &setup);
    Ok(())
}

/// The URL and host name of the known hub; without one, placeholders.
async fn hub_names(common: &CommonArgs) -> HubNames {
    let unknown = HubNames::unknown();
    let Ok(client) = command_client::open_client(common, None) else {
        return unknown;
    };
    let saved = command_client::identity_files(common)
        .ok()
        .and_then(|files| AgentCredentials::read_from(&files).ok().flatten());
    let own_host =
        saved.and_then(|credentials| Some(credentials.agent_id.split_once('@')?.1.to_owned()));
    let host = match own_host {
        Some(host) => Some(host),
        None => client
            .fetch_paths()
            .await
            .ok()
            .and_then(|paths| paths.host_name.clone()),
    };
    HubNames {
        url: client.base_url().to_owned(),
        host: host.unwrap_or(unknown.host),
    }
}

/// How the host runs `chorus`. The credential file is written as an absolute path: the host runs in any folder, and
/// a file in that folder must not replace the user's identity.
fn installed_program(common: &CommonArgs, layout: &TargetLayout) -> Result<InstalledProgram, Fail> {
    let is_explicit = common.credentials.is_some();
    if layout.is_shared && is_explicit {
        return Err(Fail::usage_error(
            "others read these files too; there --credentials is for each of them to say",
        ));
    }
    let credentials = match layout.is_shared {
        true => None,
        false => Some(host_credentials(common)?),
    };
    Ok(InstalledProgram {
        program: installed_program::install_program(layout)?,
        credentials: credentials.map(|file| file.display().to_string()),
        is_explicit,
        is_shared: layout.is_shared,
    })
}

/// The credential file for all folders: the given one, the one of this folder if it is confirmed, else the user's own.
fn host_credentials(common: &CommonArgs) -> Result<PathBuf, Fail> {
    let in_workspace = Path::new(WORKSPACE_FILE);
    let file = match &common.credentials {
        Some(file) => file.clone(),
        None if ConfirmedWorkspaces::read_list()?.has_file(in_workspace) => in_workspace.to_owned(),
        None => command_client::home_folder()?.join(HOME_FILE),
    };
    std::path::absolute(&file).map_err(|e| change_plan::file_error(&file, e))
}

/// Setting up a project confirms the identity in its folder.
fn confirm_project(target: InitTarget, roots: &InitRoots) -> Result<(), Fail> {
    let has_identity = roots.working_folder.join(WORKSPACE_FILE).exists();
    if target == InitTarget::ClaudeProject && has_identity {
        confirm::confirm_folder(&roots.working_folder)?;
    }
    Ok(())
}

/// Starts the hooks' reports after the messages that were already received.
fn start_progress(common: &CommonArgs) -> Result<(), Fail> {
    if let Ok(command) = CommandClient::open(common)
        && let Some(cursor) = command.read_state()?.parse_cursor()
    {
        ReportProgress::open_locked(&command.files, &command.credentials).start_at(cursor)?;
    }
    Ok(())
}

/// Plans the entries for the tools and the hooks.
fn add_entries(
    plan: &mut ChangePlan,
    layout: &TargetLayout,
    installed: &InstalledProgram,
) -> Result<(), Fail> {
    if let Some((path, form)) = &layout.tools {
        let before = read_file(path)?;
        let after = match form {
            ConfigForm::Json(keys) => {
                let config = json_config::JsonConfig::parse(path, before.as_deref())?;
                config.add_server(keys, installed)?;
                config.to_text()
            }
            ConfigForm::Toml => {
                let mut config = toml_config::TomlConfig::parse(path, before.as_deref())?;
                config.add_server(installed)?;
                config.change_wake(layout.wakes);
                config.to_text()
            }
        };
        plan.add_change(path, before, Some(after));
    }
    if let Some((path, hooks)) = &layout.hooks {
        let before = read_file(path)?;
        let config = json_config::JsonConfig::parse(path, before.as_deref())?;
        config.add_hooks(hooks, installed, layout.instrument, layout.hook_form)?;
        if layout.has_json_wakes() {
            config.change_wakes(layout.wakes, installed)?;
        }
        plan.add_change(path, before, Some(config.to_text()));
    }
    Ok(())
}

/// Plans to remove the tools and the hooks. A file with nothing else in it is removed.
pub fn remove_entries(plan: &mut ChangePlan, layout: &TargetLayout) -> Result<(), Fail> {
    if let Some((path, form)) = &layout.tools
        && let Some(before) = read_file(path)?
    {
        let after = match form {
            ConfigForm::Json(keys) => {
                let config = json_config::JsonConfig::parse(path, Some(&before))?;
                config.remove_server(keys);
                Some(config.to_text()).filter(|after| *after == before || !config.is_empty())
            }
            ConfigForm::Toml => {
                let mut config = toml_config::TomlConfig::parse(path, Some(&before))?;
                config.remove_server();
                Some(config.to_text()).filter(|after| *after == before || !after.trim().is_empty())
            }
        };
        plan.add_change(path, Some(before), after);
    }
    if let Some((path, _)) = &layout.hooks
        && let Some(before) = read_file(path)?
    {
        let config = json_config::JsonConfig::parse(path, Some(&before))?;
        config.remove_hooks();
        let after = Some(config.to_text()).filter(|after| *after == before || !config.is_empty());
        plan.add_change(path, Some(before), after);
    }
    Ok(())
}

/// Checks that all entries are there; otherwise all changes are undone.
fn check_installed(layout: &TargetLayout) -> Result<(), Fail> {
    skill::check_skill(&layout.skill).map_err(Fail::usage_error)?;
    let missing = |path: &Path| {
        change_plan::file_error(path, "did not take our entry; everything is as it was")
    };
    if let Some((path, form)) = &layout.tools {
        has_tools(path, *form)?
            .then_some(())
            .ok_or_else(|| missing(path))?;
    }
    if let Some((path, hooks)) = &layout.hooks {
        has_hooks(path, hooks)?
            .then_some(())
            .ok_or_else(|| missing(path))?;
        if layout.wakes == WakeChange::Add {
            let has_wakes = matches!(
                find_wake_state(layout)?,
                WakeState::Entries | WakeState::Plugin
            );
            has_wakes.then_some(()).ok_or_else(|| missing(path))?;
        }
    }
    Ok(())
}

pub fn has_tools(path: &Path, form: ConfigForm) -> Result<bool, Fail> {
    Ok(tools_program(path, form)?.is_some())
}

/// The program that our MCP server of a host runs; none when it is not installed.
pub fn tools_program(path: &Path, form: ConfigForm) -> Result<Option<String>, Fail> {
    let text = read_file(path)?;
    Ok(match form {
        ConfigForm::Json(keys) => {
            json_config::JsonConfig::parse(path, text.as_deref())?.server_program(keys)
        }
        ConfigForm::Toml => toml_config::TomlConfig::parse(path, text.as_deref())?.server_program(),
    })
}

pub fn has_hooks(path: &Path, hooks: &[target::HookEntry]) -> Result<bool, Fail> {
    Ok(json_config::JsonConfig::parse(path, read_file(path)?.as_deref())?.has_hooks(hooks))
}

/// The programs that our hooks of a host run; none when they are not installed.
pub fn hook_programs(path: &Path) -> Result<Vec<String>, Fail> {
    Ok(json_config::JsonConfig::parse(path, read_file(path)?.as_deref())?.hook_programs())
}

/// Whether the host runs the hooks only after its user has trusted them, and has not been told to.
pub fn needs_trust(layout: &TargetLayout) -> Result<bool, Fail> {
    match (&layout.tools, &layout.hooks) {
        (Some((config, ConfigForm::Toml)), Some((hooks_file, hooks))) => {
            let text = read_file(config)?;
            let config = toml_config::TomlConfig::parse(config, text.as_deref())?;
            Ok(config.count_trusted_hooks(hooks_file) < hooks.len())
        }
        (_, _) => Ok(false),
    }
}

/// Creates `~/.chorus` and its history folder (SKL-32).
fn create_storage(common: &CommonArgs) -> Result<PathBuf, Fail> {
    let home = command_client::home_folder()?;
    let files = command_client::identity_files(common)?;
    atomic_file::create_private_folder(&home.join("history"))?;
    atomic_file::create_private_folder(&files.history)?;
    Ok(home)
}

/// What `init` did for a host.
struct HostSetup<'a> {
    target: InitTarget,
    lang: &'a str,
    layout: &'a TargetLayout,
    plan: &'a ChangePlan,
    storage: &'a Path,
    program: &'a str,
}

fn print_installed(common: &CommonArgs, roots: &InitRoots, setup: &HostSetup<'_>) {
    let HostSetup {
        target,
        lang,
        layout,
        plan,
        storage,
        program,
    } = *setup;
    let skill = layout.skill.display().to_string();
    let tools = layout
        .tools
        .as_ref()
        .map(|(path, _)| roots.display_path(path));
    let hooks = layout
        .hooks
        .as_ref()
        .map(|(path, _)| roots.display_path(path));
    let registered = command_client::identity_files(common)
        .and_then(|files| Ok(AgentCredentials::read_from(&files)?))
        .is_ok_and(|credentials| credentials.is_some());
    let copied = program_copy::copy_path().is_ok_and(|copy| copy == Path::new(program));
    let output = json!({ "target": target.target_name(), "lang": lang, "program": program, "skill": skill, "storage": storage, "tools": tools,
        "hooks": hooks, "changed": plan.changed_paths(), "registered": registered });
    output::print_result(common.json, &output, || {
        let check_mark =
            |text: String| format!("{} {text}", output::paint_text(output::GOOD_STYLE, "✓"));
        let mut lines = vec![
            check_mark(format!("Files installed to {skill} ({lang})")),
            check_mark(format!(
                "Local storage initialized at {}",
                storage.display()
            )),
        ];
        lines.extend(tools.map(|path| check_mark(format!("Registered in {path}"))));
        lines.extend(hooks.map(|path| check_mark(format!("Hooks in {path}"))));
        if copied {
            let path = roots.display_path(Path::new(program));
            lines.push(check_mark(format!("The host runs {path}")));
        }
        lines.extend(
            target_note(target)
                .filter(|_| layout.hooks.is_some())
                .map(str::to_owned),
        );
        if !registered {
            lines.push(
                "Not registered yet: chorus register NAME@HOST --hub URL --culture TAG".into(),
            );
        }
        lines.join("\n")
    });
}

/// What the user still has to do in the host.
fn target_note(target: InitTarget) -> Option<&'static str> {
    match target {
        InitTarget::Codex => Some("Codex runs new hooks once you trust them: type /hooks there"),
        InitTarget::ClaudeProject => {
            Some("Claude Code asks each user once before it uses the tools of a project")
        }
        InitTarget::ClaudeUser | InitTarget::Openclaw | InitTarget::Cursor | InitTarget::Local => {
            None
        }
    }
}
