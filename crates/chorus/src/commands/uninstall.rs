//! `chorus uninstall`: removes what `init` installed for a host, and nothing else.

use super::init::change_plan::ChangePlan;
use super::init::target::{InitRoots, InitTarget};
use super::init::{program_copy, remove_entries, skill};
use crate::{cli::CommonArgs, fail::Fail, output};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The host to remove it from
    #[arg(long, value_name = "HOST")]
    target: InitTarget,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let roots = InitRoots::find_roots()?;
    let layout = args.target.resolve_layout(&roots);
    let mut plan = ChangePlan::default();
    let kept = skill::uninstall_skill(&mut plan, &layout.skill)?;
    remove_entries(&mut plan, &layout)?;
    plan.apply_or_undo(|| Ok(()))?;
    let removed_copy = program_copy::remove_unused_copy(&roots)?;
    // Fails for a folder with other files, which then stays.
    let _ = std::fs::remove_dir(&layout.skill);
    let output = json!({ "target": args.target.target_name(), "changed": plan.changed_paths(), "kept": kept,
        "removed_program": removed_copy });
    output::print_result(common.json, &output, || {
        let summary = match plan.changed_paths().is_empty() {
            true => format!(
                "nothing of ours was installed for {}",
                args.target.target_name()
            ),
            false => format!(
                "{} Removed from {}",
                output::paint_text(output::GOOD_STYLE, "✓"),
                args.target.target_name()
            ),
        };
        let removed = removed_copy.iter().map(|path| {
            format!(
                "\nremoved, since no host runs it any more: {}",
                path.display()
            )
        });
        let kept = kept
            .iter()
            .map(|path| format!("\nkept, since it was changed: {path}"));
        summary + &removed.chain(kept).collect::<String>()
    });
    Ok(())
}
