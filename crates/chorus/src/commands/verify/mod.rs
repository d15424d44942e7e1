//! `chorus verify`: checks that a host is set up completely, or that an envelope is valid (lesson 13).

mod envelope;
mod rehearsal;

use super::init::installed_program::is_runnable;
use super::init::target::{InitRoots, InitTarget, TargetLayout};
use super::init::wake_entries::{WakeState, find_wake_state, has_plugin};
use super::init::{has_hooks, has_tools, hook_programs, needs_trust, skill, tools_program};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client::CommandClient, output};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Also send a message to yourself, and measure the time until a session of the host was shown it
    #[arg(long, requires = "target")]
    wake: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct SubjectArgs {
    /// The host to check
    #[arg(long, value_name = "HOST")]
    target: Option<InitTarget>,
    /// An envelope: a file, `-` for standard input, or the JSON itself
    #[arg(long, value_name = "FILE")]
    envelope: Option<String>,
}

/// One checked item.
struct VerifyFinding {
    subject: &'static str,
    /// What was found, or the fault and its exit code.
    outcome: Result<String, (ExitKind, String)>,
}

impl VerifyFinding {
    /// A host says nothing of a hook whose program it cannot run, so this is the only place where it shows.
    fn check_programs(
        self,
        programs: Vec<String>,
        file: &str,
        layout: &TargetLayout,
        init_hint: &str,
    ) -> Self {
        let missing = programs.into_iter().find(|program| !is_runnable(program));
        let Some(missing) = missing.filter(|_| self.outcome.is_ok()) else {
            return self;
        };
        let fault = match missing.contains('/') {
            true => {
                format!("{file} runs {missing}, which is not there or cannot be run; {init_hint}")
            }
            // Files that other users read name the program without its folder, so running `init` again changes nothing.
            false if layout.is_shared => format!(
                "{file} runs {missing}, which is not on the PATH, so nothing would happen; put the folder of {missing} on the PATH"
            ),
            false => format!("{file} runs {missing}, which is not on the PATH; {init_hint}"),
        };
        Self {
            outcome: Err((ExitKind::Usage, fault)),
            ..self
        }
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    if let Some(source) = args.subject.envelope {
        return envelope::verify_envelope(common, &source);
    }
    let target = args
        .subject
        .target
        .ok_or_else(|| Fail::usage_error("which one? pass --target or --envelope"))?;
    let mut findings = check_host(target)?;
    findings.extend(check_identity(common).await);
    if args.wake {
        findings.push(rehearsal::rehearse_wake(common, target).await);
    }
    let rows = findings.iter().map(|f| match &f.outcome {
        Ok(found) => json!({ "what": f.subject, "ok": true, "found": found }),
        Err((_, wrong)) => json!({ "what": f.subject, "ok": false, "wrong": wrong }),
    });
    let output = json!({ "target": target.target_name(), "findings": rows.collect::<Vec<_>>() });
    output::print_result(common.json, &output, || {
        let line = |f: &VerifyFinding| match &f.outcome {
            Ok(found) => format!(
                "{} {}: {}",
                output::paint_text(output::GOOD_STYLE, "✓"),
                f.subject,
                output::escape_controls(found)
            ),
            Err((_, wrong)) => format!(
                "{} {}: {}",
                output::paint_text(output::BAD_STYLE, "✗"),
                f.subject,
                output::escape_controls(wrong)
            ),
        };
        findings.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    match findings
        .into_iter()
        .find_map(|finding| finding.outcome.err())
    {
        Some((exit, _)) => Err(Fail::already_reported(exit)),
        None => Ok(()),
    }
}

fn check_host(target: InitTarget) -> Result<Vec<VerifyFinding>, Fail> {
    let roots = InitRoots::find_roots()?;
    let layout = target.resolve_layout(&roots);
    let init_hint = format!("run: chorus init --target {}", target.target_name());
    let new_finding = |subject, is_installed: Result<bool, Fail>, path: String| {
        let outcome = match is_installed {
            Ok(true) => Ok(path),
            Ok(false) => Err((ExitKind::Usage, format!("not in {path}; {init_hint}"))),
            Err(fail) => Err((ExitKind::Usage, fail.to_string())),
        };
        VerifyFinding { subject, outcome }
    };
    let has_entries = match &layout.tools {
        Some((path, form)) => has_tools(path, *form).unwrap_or(false),
        None => false,
    };
    let mut findings = Vec::new();
    if has_plugin(&layout)? {
        // PLG-05: only one of the two is in force.
        let in_force = match has_entries {
            true => "enabled; the entries of chorus init are in force beside it",
            false => "enabled, and in force: skill, tools and hooks are those of the plugin",
        };
        findings.push(VerifyFinding {
            subject: "plugin",
            outcome: Ok(in_force.to_owned()),
        });
        if !has_entries {
            findings.extend(check_wakes(target, &init_hint)?);
            return Ok(findings);
        }
    }
    let state = skill::check_skill(&layout.skill);
    let with_hooks = !matches!(state, Ok((_, false)));
    let skill = state.map(|(lang, _)| format!("{} ({lang})", roots.display_path(&layout.skill)));
    findings.push(VerifyFinding {
        subject: "skill",
        outcome: skill.map_err(|fault| (ExitKind::Usage, format!("{fault}; {init_hint}"))),
    });
    if let Some((path, form)) = &layout.tools {
        let found = roots.display_path(path);
        let programs = tools_program(path, *form)?.into_iter().collect();
        let finding = new_finding("tools", has_tools(path, *form), found.clone());
        findings.push(finding.check_programs(programs, &found, &layout, &init_hint));
    }
    if let Some((path, hooks)) = layout.hooks.as_ref().filter(|_| with_hooks) {
        let mut found = roots.display_path(path);
        if needs_trust(&layout)? {
            found.push_str("; not trusted yet, so nothing runs: type /hooks in Codex once");
        }
        let programs = hook_programs(path)?;
        let finding = new_finding("hooks", has_hooks(path, hooks), found);
        let file = roots.display_path(path);
        findings.push(finding.check_programs(programs, &file, &layout, &init_hint));
    }
    findings.extend(check_wakes(target, &init_hint)?);
    Ok(findings)
}

/// What wakes the host's idle sessions; not set up is no fault.
fn check_wakes(target: InitTarget, init_hint: &str) -> Result<Option<VerifyFinding>, Fail> {
    let option = match target {
        InitTarget::ClaudeUser => "",
        InitTarget::Codex => " --wake",
        InitTarget::ClaudeProject
        | InitTarget::Openclaw
        | InitTarget::Cursor
        | InitTarget::Local => return Ok(None),
    };
    let layout = target.resolve_layout(&InitRoots::find_roots()?);
    let outcome = match find_wake_state(&layout)? {
        WakeState::Entries => Ok("mail wakes idle sessions".to_owned()),
        WakeState::Plugin => Ok("mail wakes idle sessions, by the plugin".to_owned()),
        WakeState::Off => Ok(format!("off; to turn it on {init_hint}{option}")),
        WakeState::Partial => Err((
            ExitKind::Usage,
            format!("one of the two hooks is missing; {init_hint}"),
        )),
    };
    Ok(Some(VerifyFinding {
        subject: "waking",
        outcome,
    }))
}

/// Checks the saved identity, and whether the hub still knows it.
async fn check_identity(common: &CommonArgs) -> Vec<VerifyFinding> {
    let command = match CommandClient::open(common) {
        Ok(command) => command,
        Err(fail) => {
            return vec![VerifyFinding {
                subject: "identity",
                outcome: Err((fail.exit_kind(), fail.to_string())),
            }];
        }
    };
    let identity = format!(
        "{} ({})",
        command.credentials.agent_id,
        command.files.credentials.display()
    );
    let hub = match command
        .client
        .fetch_record(&command.credentials.agent_id)
        .await
    {
        Ok(_) => Ok(command.client.base_url().to_owned()),
        Err(error) => {
            let fail = Fail::from(error);
            Err((fail.exit_kind(), fail.to_string()))
        }
    };
    vec![
        VerifyFinding {
            subject: "identity",
            outcome: Ok(identity),
        },
        VerifyFinding {
            subject: "hub",
            outcome: hub,
        },
    ]
}
