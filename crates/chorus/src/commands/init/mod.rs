//! `chorus init`: a host learns Chorus: the skill, the tools, and hooks where it has them (SKL-32…34).

mod json;
pub mod plan;
mod program;
pub mod skill;
pub mod target;
mod toml;

use super::hook::Told;
use crate::{cli::Common, fail::Fail, out, session, session::Session};
use chorus_client::files::{Credentials, atomic};
use plan::{Plan, read};
use program::Us;
use serde_json::json;
use skill::{Hub, Lang};
use std::path::{Path, PathBuf};
use target::{Form, Layout, Roots, Target};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who shall learn it
    #[arg(long, value_name = "HOST")]
    target: Target,
    /// The language of the skill text
    #[arg(long, value_name = "TAG", default_value = "en")]
    lang: Lang,
    /// Leave the host's hooks alone
    #[arg(long)]
    no_hooks: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let roots = Roots::find()?;
    let mut layout = args.target.layout(&roots);
    layout.hooks = layout.hooks.filter(|_| !args.no_hooks);
    let hub = hub(common).await;
    let mut plan = Plan::default();
    skill::install(&mut plan, &layout.skill, args.lang, &hub, !args.no_hooks)?;
    add(&mut plan, &layout, &us(common, &layout)?)?;
    plan.apply(|| installed(&layout))?;
    let storage = storage(common)?;
    begin(common)?;
    tell(common, &args, &roots, &layout, &plan, &storage);
    Ok(())
}

/// The hub that is known here. Without one the texts say that it has to be found out.
async fn hub(common: &Common) -> Hub {
    let unknown = Hub {
        url: "<hub_url>".into(),
        host: "<host>".into(),
    };
    let Ok(client) = session::hub(common, None) else {
        return unknown;
    };
    let saved = session::place(common)
        .ok()
        .and_then(|place| Credentials::read(&place).ok().flatten());
    let own_host = saved.and_then(|who| Some(who.agent_id.split_once('@')?.1.to_owned()));
    let host = match own_host {
        Some(host) => Some(host),
        None => client
            .paths()
            .await
            .ok()
            .and_then(|paths| paths.host_name.clone()),
    };
    Hub {
        url: client.base().to_owned(),
        host: host.unwrap_or(unknown.host),
    }
}

/// How the host shall call us. A file that was named is named to it too, wherever it runs.
fn us(common: &Common, layout: &Layout) -> Result<Us, Fail> {
    let whole = |file: &PathBuf| std::path::absolute(file).map_err(|e| plan::wrong(file, e));
    let credentials = common.credentials.as_ref().map(whole).transpose()?;
    if layout.for_others && credentials.is_some() {
        return Err(Fail::usage(
            "others read these files too; there --credentials is for each of them to say",
        ));
    }
    let credentials = credentials.map(|file| file.display().to_string());
    Ok(Us {
        program: program::program(layout),
        credentials,
        for_others: layout.for_others,
    })
}

/// What was heard before the hooks came is no news to them.
fn begin(common: &Common) -> Result<(), Fail> {
    if let Ok(session) = Session::open(common)
        && let Some(heard) = session.state()?.cursor()
    {
        Told::open(&session.place, &session.who).begin(heard)?;
    }
    Ok(())
}

/// Plans the tools and the hooks.
fn add(plan: &mut Plan, layout: &Layout, us: &Us) -> Result<(), Fail> {
    if let Some((path, form)) = &layout.tools {
        let before = read(path)?;
        let after = match form {
            Form::Json(keys) => {
                let config = json::Config::parse(path, before.as_deref())?;
                config.add_server(keys, us)?;
                config.text()
            }
            Form::Toml => {
                let mut config = toml::Config::parse(path, before.as_deref())?;
                config.add_server(us)?;
                config.text()
            }
        };
        plan.change(path, before, Some(after));
    }
    if let Some((path, hooks)) = &layout.hooks {
        let before = read(path)?;
        let config = json::Config::parse(path, before.as_deref())?;
        config.add_hooks(hooks, us, layout.instrument)?;
        plan.change(path, before, Some(config.text()));
    }
    Ok(())
}

/// Plans to take the tools and the hooks out again. A file in which nothing else is left goes.
pub fn remove(plan: &mut Plan, layout: &Layout) -> Result<(), Fail> {
    if let Some((path, form)) = &layout.tools
        && let Some(before) = read(path)?
    {
        let after = match form {
            Form::Json(keys) => {
                let config = json::Config::parse(path, Some(&before))?;
                config.remove_server(keys);
                Some(config.text()).filter(|after| *after == before || !config.is_empty())
            }
            Form::Toml => {
                let mut config = toml::Config::parse(path, Some(&before))?;
                config.remove_server();
                Some(config.text()).filter(|after| *after == before || !after.trim().is_empty())
            }
        };
        plan.change(path, Some(before), after);
    }
    if let Some((path, _)) = &layout.hooks
        && let Some(before) = read(path)?
    {
        let config = json::Config::parse(path, Some(&before))?;
        config.remove_hooks();
        let after = Some(config.text()).filter(|after| *after == before || !config.is_empty());
        plan.change(path, Some(before), after);
    }
    Ok(())
}

/// Everything is there and can be read again; otherwise it is all taken back.
fn installed(layout: &Layout) -> Result<(), Fail> {
    skill::state(&layout.skill).map_err(Fail::usage)?;
    let missing =
        |path: &Path| plan::wrong(path, "did not take our entry; everything is as it was");
    if let Some((path, form)) = &layout.tools {
        has_tools(path, *form)?
            .then_some(())
            .ok_or_else(|| missing(path))?;
    }
    if let Some((path, hooks)) = &layout.hooks {
        has_hooks(path, hooks)?
            .then_some(())
            .ok_or_else(|| missing(path))?;
    }
    Ok(())
}

pub fn has_tools(path: &Path, form: Form) -> Result<bool, Fail> {
    let text = read(path)?;
    Ok(match form {
        Form::Json(keys) => json::Config::parse(path, text.as_deref())?.has_server(keys),
        Form::Toml => toml::Config::parse(path, text.as_deref())?.has_server(),
    })
}

pub fn has_hooks(path: &Path, hooks: &[target::Hook]) -> Result<bool, Fail> {
    Ok(json::Config::parse(path, read(path)?.as_deref())?.has_hooks(hooks))
}

/// SKL-32: `~/.chorus` and its history.
fn storage(common: &Common) -> Result<PathBuf, Fail> {
    let home = session::home()?;
    let place = session::place(common)?;
    atomic::private_folder(&home.join("history"))?;
    atomic::private_folder(&place.history)?;
    Ok(home)
}

fn tell(common: &Common, args: &Args, roots: &Roots, layout: &Layout, plan: &Plan, storage: &Path) {
    let (skill, lang) = (layout.skill.display().to_string(), args.lang.tag());
    let tools = layout.tools.as_ref().map(|(path, _)| roots.short(path));
    let hooks = layout.hooks.as_ref().map(|(path, _)| roots.short(path));
    let registered = session::place(common)
        .and_then(|place| Ok(Credentials::read(&place)?))
        .is_ok_and(|who| who.is_some());
    let said = json!({ "target": args.target.name(), "lang": lang, "skill": skill, "storage": storage, "tools": tools,
        "hooks": hooks, "changed": plan.paths(), "registered": registered });
    out::say(common.json, &said, || {
        let good = |text: String| format!("{} {text}", out::painted(out::GOOD, "✓"));
        let mut lines = vec![
            good(format!("Files installed to {skill} ({lang})")),
            good(format!(
                "Local storage initialized at {}",
                storage.display()
            )),
        ];
        lines.extend(tools.map(|path| good(format!("Registered in {path}"))));
        lines.extend(hooks.map(|path| good(format!("Hooks in {path}"))));
        lines.extend(
            note(args.target)
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

/// What a person still has to do in the host itself.
fn note(target: Target) -> Option<&'static str> {
    match target {
        Target::Codex => Some("Codex runs new hooks once you trust them: type /hooks there"),
        Target::ClaudeProject => {
            Some("Claude Code asks everybody once before it uses the tools of a project")
        }
        Target::ClaudeUser | Target::Openclaw | Target::Cursor | Target::Local => None,
    }
}
