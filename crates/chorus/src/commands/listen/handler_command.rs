//! Runs `--exec` for each message, with the event on standard input and no foreign text in its arguments (SKL-17).

use super::{Args, print::ReceivedMessage};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::{io::AsyncWriteExt, process::Command};

/// The error code for a sender when the receiver's handler failed.
pub const HANDLER_FAILED: &str = "ADAPTATION_FAILED";

/// The reply to a message: `ok` without a command, else by the command's exit status.
pub async fn run_handler(
    args: &Args,
    message: &ReceivedMessage,
    envelope: &Envelope,
) -> ReceiverReply {
    let Some(command) = &args.exec else {
        return ReceiverReply::ok();
    };
    let limit = Duration::from_secs(args.exec_timeout.max(1));
    let failure_reply = |detail: &str| ReceiverReply::error(HANDLER_FAILED, detail);
    match tokio::time::timeout(limit, run_with_message(command, message, envelope)).await {
        Ok(Ok(status)) if status.success() => ReceiverReply::ok(),
        Ok(Ok(status)) => {
            tracing::warn!("the command ended with {status}");
            failure_reply("the receiver's handler failed")
        }
        Ok(Err(error)) => {
            tracing::warn!("the command could not be run: {error}");
            failure_reply("the receiver's handler could not be run")
        }
        Err(_) => {
            tracing::warn!(
                "the command took longer than {} s and was ended",
                limit.as_secs()
            );
            failure_reply("the receiver's handler did not finish in time")
        }
    }
}

/// Runs the command for a channel delivery. Its exit status is only logged: the command answers at the callback.
pub async fn pass_delivery(args: &Args, line: &str) {
    let Some(command) = &args.exec else { return };
    let limit = Duration::from_secs(args.exec_timeout.max(1));
    match tokio::time::timeout(limit, run_with_input(command, &[], line)).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!("the command ended with {status}"),
        Ok(Err(error)) => tracing::warn!("the command could not be run: {error}"),
        Err(_) => tracing::warn!(
            "the command took longer than {} s and was ended",
            limit.as_secs()
        ),
    }
}

async fn run_with_message(
    command: &str,
    message: &ReceivedMessage,
    envelope: &Envelope,
) -> std::io::Result<ExitStatus> {
    // Both values are validated: letters, digits and a few punctuation marks.
    let sender = ("CHORUS_SENDER_ID", envelope.sender_id().as_str());
    let trace = (
        "CHORUS_TRACE_ID",
        message.trace_id.as_deref().unwrap_or_default(),
    );
    run_with_input(command, &[sender, trace], &message.to_json()).await
}

async fn run_with_input(
    command: &str,
    env_vars: &[(&str, &str)],
    line: &str,
) -> std::io::Result<ExitStatus> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .envs(env_vars.iter().copied())
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command may ignore its input; only its exit status counts.
        let line = format!("{line}\n");
        let _ = input.write_all(line.as_bytes()).await;
    }
    child.wait().await
}
