//! `chorus locks`: lists the claims that hold, as the hub keeps them (FRM-27, R-83).

use super::frame_context::{self, FrameContext, SenderArgs};
use super::lock::is_lock_kind;
use super::{file_edit, format, git_tree};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client, output, stop_signal::StopSignal};
use chorus_client::frame::{FrameStreamEvent, LockClaim, LockClaims};
use chorus_wire::time::UnixMicros;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Exit with code 4 if another session claims one of these
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["follow", "hook"])]
    check: Vec<String>,
    /// Keep running and show each change
    #[arg(long, conflicts_with = "hook")]
    follow: bool,
    /// Run as an editor's hook before an edit: reads the session and the file as JSON from standard input, and makes the
    /// editor ask first if another session claims the file
    #[arg(long)]
    hook: bool,
    #[command(flatten)]
    sender: SenderArgs,
}

impl Args {
    /// The arguments of `--hook`.
    pub fn for_hook(sender: SenderArgs) -> Self {
        Self {
            check: Vec::new(),
            follow: false,
            hook: true,
            sender,
        }
    }
}

pub async fn run(common: &CommonArgs, mut args: Args) -> Result<(), Fail> {
    if args.hook {
        let Some(edit) = file_edit::FileEdit::read_stdin() else {
            return Ok(());
        };
        edit.fill_session(&mut args.sender);
        let outcome = match command_client::pin_credentials(common) {
            Ok(common) => warn_before_edit(&common, args.sender, &edit.file).await,
            Err(fail) => Err(fail),
        };
        return file_edit::report_only(outcome);
    }
    let context = FrameContext::open(common, args.sender).await?;
    if args.follow {
        return follow_claims(&context).await;
    }
    let claims = context.fetch_claims().await?;
    if !args.check.is_empty() {
        return check_files(&context, &claims, &args.check);
    }
    print_claims(common, &claims);
    Ok(())
}

/// Shows the claims, and then each change of them.
async fn follow_claims(context: &FrameContext<'_>) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    // Opened before the claims are read, so that no change is missed.
    let mut frames = context.open_live_frames().await?;
    print_claims(context.common, &context.fetch_claims().await?);
    loop {
        let event = tokio::select! {
            event = frames.next() => event?,
            () = stop.wait_requested() => return Ok(()),
        };
        if let FrameStreamEvent::Frame(frame, _) = event
            && is_lock_kind(frame.kind())
        {
            let claims = context.fetch_claims().await?;
            let value = json!({ "locks": claims.active_claims(frame_context::current_time()) });
            output::print_result(context.common.json, &value, || format::format_frame(&frame));
        }
    }
}

fn print_claims(common: &CommonArgs, claims: &LockClaims) {
    let now = frame_context::current_time();
    let active = claims.active_claims(now);
    let width = active
        .iter()
        .map(|claim| output::escape_controls(&claim.resource).chars().count())
        .max()
        .unwrap_or(0);
    if active.is_empty() {
        crate::output::print_aside(common.json, "nothing is claimed");
    }
    for claim in active {
        output::print_result(common.json, &claim_value(claim, now), || {
            format::format_claim(claim, width, now)
        });
    }
}

/// The claim as JSON, with its remaining milliseconds.
fn claim_value(claim: &LockClaim, now: UnixMicros) -> serde_json::Value {
    let mut value = json!(claim);
    value["left_ms"] = json!(crate::commands::duration::as_millis(claim.time_left(now)));
    value
}

fn check_files(
    context: &FrameContext<'_>,
    claims: &LockClaims,
    files: &[String],
) -> Result<(), Fail> {
    let now = frame_context::current_time();
    let mut conflicts = 0;
    for file in files {
        let name = git_tree::shared_name(file);
        for claim in claims
            .claims_on(&name, now)
            .into_iter()
            .filter(|claim| !context.is_holder(claim))
        {
            output::print_result(context.common.json, &claim_value(claim, now), || {
                format::format_claim(claim, 0, now)
            });
            conflicts += 1;
        }
    }
    match conflicts {
        0 => Ok(()),
        _ => Err(Fail::new(
            ExitKind::Refused,
            "CLAIMED",
            "another session claims it",
        )),
    }
}

/// Prints a hook answer that makes the editor (Claude Code or compatible) ask its user before the edit.
async fn warn_before_edit(common: &CommonArgs, sender: SenderArgs, file: &str) -> Result<(), Fail> {
    let context = FrameContext::open(common, sender).await?;
    let claims = context.fetch_claims().await?;
    let now = frame_context::current_time();
    let name = git_tree::shared_name(file);
    let other_claim = claims
        .claims_on(&name, now)
        .into_iter()
        .find(|claim| !context.is_holder(claim));
    let Some(claim) = other_claim else {
        return Ok(());
    };
    let intent = claim
        .intent
        .as_ref()
        .map(|intent| format!(" ({intent})"))
        .unwrap_or_default();
    let left = crate::commands::duration::format_duration(claim.time_left(now));
    let reason = format!(
        "{} is claimed by {} for {left}{intent}",
        claim.resource,
        format::format_holder(claim)
    );
    let answer = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": reason } });
    output::print_json(&answer.to_string());
    Ok(())
}
