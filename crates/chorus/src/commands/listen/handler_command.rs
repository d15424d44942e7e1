//! A command per message: the event on its standard input, nothing foreign in its words (SKL-17).

use super::{Args, print::ReceivedMessage};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::{io::AsyncWriteExt, process::Command};

/// What a sender is told when the receiver could not make something of its message.
pub const HANDLER_FAILED: &str = "ADAPTATION_FAILED";

/// Shown is received; with a command, its exit status is the answer.
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

/// The same for a delivery from a channel. Nobody waits for the outcome: what the command has to say goes to the callback.
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
    // Both are of our own grammar: letters, digits and a few marks.
    let sender = ("CHORUS_SENDER_ID", envelope.sender_id().as_str());
    let trace = (
        "CHORUS_TRACE_ID",
        message.trace_id.as_deref().unwrap_or_default(),
    );
    run_with_input(command, &[sender, trace], &message.to_json()).await
}

async fn run_with_input(
    command: &str,
    names: &[(&str, &str)],
    line: &str,
) -> std::io::Result<ExitStatus> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .envs(names.iter().copied())
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input has its reasons; its exit status says the rest.
        let line = format!("{line}\n");
        let _ = input.write_all(line.as_bytes()).await;
    }
    child.wait().await
}
