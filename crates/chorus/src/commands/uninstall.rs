//! `chorus uninstall`: what `init` gave a host is taken out again, and nothing else.

use super::init::plan::Plan;
use super::init::target::{Roots, Target};
use super::init::{remove, skill};
use crate::{cli::Common, fail::Fail, out};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who shall forget it
    #[arg(long, value_name = "HOST")]
    target: Target,
}

pub fn run(common: &Common, args: &Args) -> Result<(), Fail> {
    let roots = Roots::find()?;
    let layout = args.target.layout(&roots);
    let mut plan = Plan::default();
    let kept = skill::uninstall(&mut plan, &layout.skill)?;
    remove(&mut plan, &layout)?;
    plan.apply(|| Ok(()))?;
    // A folder in which somebody else keeps something stays.
    let _ = std::fs::remove_dir(&layout.skill);
    let said = json!({ "target": args.target.name(), "changed": plan.paths(), "kept": kept });
    out::say(common.json, &said, || {
        let done = match plan.paths().is_empty() {
            true => format!("nothing of ours was installed for {}", args.target.name()),
            false => format!(
                "{} Removed from {}",
                out::painted(out::GOOD, "✓"),
                args.target.name()
            ),
        };
        let kept = kept
            .iter()
            .map(|path| format!("\nkept, since it was changed: {path}"));
        done + &kept.collect::<String>()
    });
    Ok(())
}
