//! A command per message: the event on its standard input, nothing foreign in its words (SKL-17).

use super::{Args, show::Message};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::{io::AsyncWriteExt, process::Command};

/// What a sender is told when the receiver could not make something of its message.
pub const FAILED: &str = "ADAPTATION_FAILED";

/// Shown is received; with a command, its exit status is the answer.
pub async fn handle(args: &Args, message: &Message, envelope: &Envelope) -> ReceiverReply {
    let Some(command) = &args.exec else {
        return ReceiverReply::ok();
    };
    let limit = Duration::from_secs(args.exec_timeout.max(1));
    let failed = |detail: &str| ReceiverReply::error(FAILED, detail);
    match tokio::time::timeout(limit, run(command, message, envelope)).await {
        Ok(Ok(status)) if status.success() => ReceiverReply::ok(),
        Ok(Ok(status)) => {
            tracing::warn!("the command ended with {status}");
            failed("the receiver's handler failed")
        }
        Ok(Err(error)) => {
            tracing::warn!("the command could not be run: {error}");
            failed("the receiver's handler could not be run")
        }
        Err(_) => {
            tracing::warn!("the command took longer than {} s and was ended", limit.as_secs());
            failed("the receiver's handler did not finish in time")
        }
    }
}

async fn run(command: &str, message: &Message, envelope: &Envelope) -> std::io::Result<ExitStatus> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        // Both are of our own grammar: letters, digits and a few marks.
        .env("CHORUS_SENDER_ID", envelope.sender_id().as_str())
        .env("CHORUS_TRACE_ID", message.trace_id.as_deref().unwrap_or_default())
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input has its reasons; its exit status says the rest.
        let line = format!("{}\n", message.to_json());
        let _ = input.write_all(line.as_bytes()).await;
    }
    child.wait().await
}
