//! `chorus verify`: whether a host has all it needs, or whether an envelope keeps every rule (lesson 13).

mod envelope;

use super::init::target::{Roots, Target};
use super::init::{has_hooks, has_tools, skill};
use crate::fail::{Exit, Fail};
use crate::{cli::Common, out, session::Session};
use serde_json::json;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Args {
    /// The host that learnt it
    #[arg(long, value_name = "HOST")]
    target: Option<Target>,
    /// An envelope: a file, `-` for standard input, or the JSON itself
    #[arg(long, value_name = "FILE")]
    envelope: Option<String>,
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    /// What is there, or what is wrong and how the command ends because of it.
    found: Result<String, (Exit, String)>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    if let Some(source) = args.envelope {
        return envelope::run(common, &source);
    }
    let target = args
        .target
        .ok_or_else(|| Fail::usage("which one? pass --target or --envelope"))?;
    let mut findings = host(target)?;
    findings.extend(identity(common).await);
    let rows = findings.iter().map(|f| match &f.found {
        Ok(found) => json!({ "what": f.what, "ok": true, "found": found }),
        Err((_, wrong)) => json!({ "what": f.what, "ok": false, "wrong": wrong }),
    });
    let said = json!({ "target": target.name(), "findings": rows.collect::<Vec<_>>() });
    out::say(common.json, &said, || {
        let line = |f: &Finding| match &f.found {
            Ok(found) => format!(
                "{} {}: {}",
                out::painted(out::GOOD, "✓"),
                f.what,
                out::harmless(found)
            ),
            Err((_, wrong)) => format!(
                "{} {}: {}",
                out::painted(out::BAD, "✗"),
                f.what,
                out::harmless(wrong)
            ),
        };
        findings.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    match findings.into_iter().find_map(|finding| finding.found.err()) {
        Some((exit, _)) => Err(Fail::told(exit)),
        None => Ok(()),
    }
}

fn host(target: Target) -> Result<Vec<Finding>, Fail> {
    let roots = Roots::find()?;
    let layout = target.layout(&roots);
    let again = format!("run: chorus init --target {}", target.name());
    let judge = |what, good: Result<bool, Fail>, place: String| {
        let found = match good {
            Ok(true) => Ok(place),
            Ok(false) => Err((Exit::Usage, format!("not in {place}; {again}"))),
            Err(fail) => Err((Exit::Usage, fail.to_string())),
        };
        Finding { what, found }
    };
    let state = skill::state(&layout.skill);
    let hooked = !matches!(state, Ok((_, false)));
    let skill = state.map(|(lang, _)| format!("{} ({lang})", roots.short(&layout.skill)));
    let mut findings = vec![Finding {
        what: "skill",
        found: skill.map_err(|why| (Exit::Usage, format!("{why}; {again}"))),
    }];
    if let Some((path, form)) = &layout.tools {
        findings.push(judge("tools", has_tools(path, *form), roots.short(path)));
    }
    if let Some((path, hooks)) = layout.hooks.as_ref().filter(|_| hooked) {
        findings.push(judge("hooks", has_hooks(path, hooks), roots.short(path)));
    }
    Ok(findings)
}

/// Who speaks, and whether the hub still knows it.
async fn identity(common: &Common) -> Vec<Finding> {
    let session = match Session::open(common) {
        Ok(session) => session,
        Err(fail) => {
            return vec![Finding {
                what: "identity",
                found: Err((fail.exit(), fail.to_string())),
            }];
        }
    };
    let who = format!(
        "{} ({})",
        session.who.agent_id,
        session.place.credentials.display()
    );
    let hub = match session.client.record(&session.who.agent_id).await {
        Ok(_) => Ok(session.client.base().to_owned()),
        Err(error) => {
            let fail = Fail::from(error);
            Err((fail.exit(), fail.to_string()))
        }
    };
    vec![
        Finding {
            what: "identity",
            found: Ok(who),
        },
        Finding {
            what: "hub",
            found: hub,
        },
    ]
}
