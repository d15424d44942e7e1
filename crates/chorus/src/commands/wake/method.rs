//! The methods to wake a session: a line, an exit code, Codex's queue, OpenClaw's hook, or a command.

use super::wake_text::WakeNews;
use crate::fail::{ExitKind, Fail};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_wire::secret::Secret;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::{io::AsyncWriteExt, process::Command};

/// Max time of a command that wakes the host; a host that takes longer is not waking.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// How the session is woken.
#[derive(Clone, Debug)]
pub enum WakeMethod {
    /// A line on standard output for each batch.
    Lines,
    /// The text on standard error, and the exit code 2.
    Once,
    /// A message in the queue of this Codex thread.
    Codex(String),
    /// A POST to the wake hook of an OpenClaw gateway, with the token in a file.
    Openclaw { url: String, token_file: PathBuf },
    /// A command, with the batch as JSON on standard input.
    Exec(String),
}

impl WakeMethod {
    /// Whether the text of the messages becomes part of the turn. Where the host takes the text for its user's, it must not.
    pub fn carries_text(&self) -> bool {
        match self {
            WakeMethod::Lines | WakeMethod::Once => true,
            WakeMethod::Codex(_) | WakeMethod::Openclaw { .. } | WakeMethod::Exec(_) => false,
        }
    }

    /// Whether one wake is all.
    pub fn ends_after_wake(&self) -> bool {
        match self {
            WakeMethod::Once => true,
            WakeMethod::Lines
            | WakeMethod::Codex(_)
            | WakeMethod::Openclaw { .. }
            | WakeMethod::Exec(_) => false,
        }
    }

    /// Wakes the session. An error means that the host did not take it.
    pub async fn wake_session(&self, news: &WakeNews) -> Result<(), Fail> {
        match self {
            WakeMethod::Lines => write_line(std::io::stdout(), &news.format_line()),
            WakeMethod::Once => write_line(std::io::stderr(), &news.format_letters()),
            WakeMethod::Codex(thread) => queue_for_codex(thread, &news.format_notice()).await,
            WakeMethod::Openclaw { url, token_file } => {
                post_to_openclaw(url, token_file, &news.format_notice()).await
            }
            WakeMethod::Exec(command) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(command);
                run_command(shell, &format!("{}\n", news.to_json())).await
            }
        }
    }
}

fn wake_error(message: impl Into<String>) -> Fail {
    Fail::new(ExitKind::Transport, "TRANSPORT", message)
}

fn write_line(mut out: impl Write, text: &str) -> Result<(), Fail> {
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|e| wake_error(format!("the host does not read: {e}")))
}

/// Puts a message into the queue of a Codex thread, which starts a turn if the thread is idle.
pub async fn queue_for_codex(thread: &str, text: &str) -> Result<(), Fail> {
    let mut codex = Command::new("codex");
    codex.args(["queue", "--thread", thread, "--message", text]);
    run_command(codex, "").await
}

async fn post_to_openclaw(url: &str, token_file: &PathBuf, text: &str) -> Result<(), Fail> {
    let token = tokio::fs::read_to_string(token_file)
        .await
        .map_err(|e| chorus_client::Error::file_error(token_file, e))?;
    let gateway = HubClient::new(url, Some(Secret::new(token.trim())))?;
    let body = json!({ "text": text, "mode": "now" }).to_string();
    gateway
        .send_call(ApiCall::post("/hooks/wake", body))
        .await?
        .require_success()?;
    Ok(())
}

/// Runs a command with this input; anything but the exit code 0 is an error.
async fn run_command(mut command: Command, input: &str) -> Result<(), Fail> {
    let spawn_error = |e| wake_error(format!("the command could not be run: {e}"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(spawn_error)?;
    let run = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A command may ignore its input; only its exit code counts.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(COMMAND_TIMEOUT, run).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(wake_error(format!("the command ended with {status}"))),
        Ok(Err(error)) => Err(spawn_error(error)),
        Err(_) => Err(wake_error("the command took too long")),
    }
}
