//! `chorus doctor`: checks what Chorus needs on this machine, and names the command that mends what is wrong.

mod hub_checks;
mod machine_checks;

use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client, output};
use chorus_client::files::AgentCredentials;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {}

/// What a check found.
enum CheckOutcome {
    /// It is as it should be.
    Good(String),
    /// It is not there, and is needed by some users only.
    Unused(String),
    /// It must be mended.
    Wrong(String),
}

/// One line of the report.
struct DoctorCheck {
    subject: &'static str,
    outcome: CheckOutcome,
    /// The command that mends it, or sets it up.
    fix: Option<String>,
}

impl DoctorCheck {
    fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            outcome: CheckOutcome::Good(found.into()),
            fix: None,
        }
    }

    fn unused(subject: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            subject,
            outcome: CheckOutcome::Unused(found.into()),
            fix: Some(fix.into()),
        }
    }

    fn wrong(subject: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            subject,
            outcome: CheckOutcome::Wrong(found.into()),
            fix: Some(fix.into()),
        }
    }

    fn is_wrong(&self) -> bool {
        matches!(self.outcome, CheckOutcome::Wrong(_))
    }

    fn format_line(&self) -> String {
        let (mark, found) = match &self.outcome {
            CheckOutcome::Good(found) => (output::paint_text(output::GOOD_STYLE, "✓"), found),
            CheckOutcome::Unused(found) => (output::paint_text(output::FAINT_STYLE, "–"), found),
            CheckOutcome::Wrong(found) => (output::paint_text(output::BAD_STYLE, "✗"), found),
        };
        let fix = self.fix.as_ref().map(|fix| format!("; run: {fix}"));
        format!(
            "{mark} {}: {}",
            self.subject,
            output::escape_controls(&format!("{found}{}", fix.unwrap_or_default()))
        )
    }

    fn to_json(&self) -> serde_json::Value {
        let (state, found) = match &self.outcome {
            CheckOutcome::Good(found) => ("ok", found),
            CheckOutcome::Unused(found) => ("unused", found),
            CheckOutcome::Wrong(found) => ("wrong", found),
        };
        json!({ "what": self.subject, "ok": !self.is_wrong(), "state": state, "found": found, "fix": self.fix })
    }
}

pub async fn run(common: &CommonArgs, _args: Args) -> Result<(), Fail> {
    let files = command_client::identity_files(common)?;
    let credentials = AgentCredentials::read_from(&files);
    let mut checks = vec![
        machine_checks::check_program(),
        machine_checks::check_credentials(&files, &credentials),
    ];
    let credentials = credentials.ok().flatten();
    checks.extend(hub_checks::check_hub(common, credentials.as_ref()).await);
    checks.push(machine_checks::check_hooks()?);
    checks.push(machine_checks::check_listener(&files));
    let is_well = !checks.iter().any(DoctorCheck::is_wrong);
    let rows: Vec<_> = checks.iter().map(DoctorCheck::to_json).collect();
    let report = json!({ "ok": is_well, "checks": rows });
    output::print_result(common.json, &report, || {
        let lines: Vec<String> = checks.iter().map(DoctorCheck::format_line).collect();
        lines.join("\n")
    });
    match is_well {
        true => Ok(()),
        false => Err(Fail::already_reported(ExitKind::Usage)),
    }
}
