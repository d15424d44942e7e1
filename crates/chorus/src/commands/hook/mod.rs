//! `chorus hook`: what a host's hooks run: new mail and frames between turns, a word about every edit. Never in the way: it is
//! quick, always ends with 0, and says nothing when nothing is new.

mod news;
mod report_progress;

use super::frame::{advise, file_edit, frame_context, locks};
use crate::{cli::CommonArgs, fail::Fail, output};
use news::HookNews;
pub use report_progress::ReportProgress;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;

/// A host waits for its hooks, and a person for the host: after this a hub counts as away.
const HOOK_TIMEOUT: Duration = Duration::from_secs(4);
/// What a host says of a turn is short, but a prompt may be pasted into it.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the host is doing
    event: HookEvent,
    #[command(flatten)]
    voice: frame_context::SenderArgs,
}

/// The events of hosts of the Claude Code kind, spelt as they spell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum HookEvent {
    SessionStart,
    UserPromptSubmit,
    Stop,
    PreToolUse,
    PostToolUse,
}

/// What the host says on standard input, as far as we need it.
#[derive(Debug, Default, Deserialize)]
struct HookInput {
    #[serde(default)]
    session_id: String,
    /// It stopped before in this turn, because of a hook: once is enough.
    #[serde(default)]
    stop_hook_active: bool,
}

impl HookInput {
    fn read_stdin() -> Self {
        let mut text = String::new();
        let read = std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES)
            .read_to_string(&mut text);
        read.ok()
            .and_then(|_| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let (event, sender_args) = (args.event, args.voice);
    let hook_run = async {
        match event {
            HookEvent::PreToolUse => locks::run(common, locks::Args::for_hook(sender_args)).await,
            HookEvent::PostToolUse => {
                advise::run(common, advise::Args::for_hook(sender_args)).await
            }
            HookEvent::SessionStart | HookEvent::UserPromptSubmit | HookEvent::Stop => {
                report_news(common, event, sender_args).await
            }
        }
    };
    match tokio::time::timeout(HOOK_TIMEOUT, hook_run).await {
        Ok(outcome) => file_edit::report_only(outcome),
        Err(_) => file_edit::report_only(Err(Fail::usage_error(
            "the hub took too long; nothing was asked",
        ))),
    }
}

async fn report_news(
    common: &CommonArgs,
    event: HookEvent,
    mut sender_args: frame_context::SenderArgs,
) -> Result<(), Fail> {
    // On a thread of its own, so that a host that never closes our input does not hold us either.
    let input = tokio::task::spawn_blocking(HookInput::read_stdin)
        .await
        .unwrap_or_default();
    if sender_args.session.is_none() {
        sender_args.session = frame_context::parse_ident(&input.session_id).ok();
    }
    if event == HookEvent::SessionStart {
        export_session(&sender_args);
    }
    if event == HookEvent::Stop && input.stop_hook_active {
        return Ok(());
    }
    let news = HookNews::gather_news(common, sender_args, event != HookEvent::Stop).await?;
    if let Some(text) = news.format_news() {
        output::print_line(&format_for_host(event, &text).to_string());
    }
    news.mark_reported().await
}

/// The agent's own shell commands are of the same session as its hooks: a claim it makes is known as its own.
fn export_session(sender_args: &frame_context::SenderArgs) {
    let (Some(session), Some(file)) = (&sender_args.session, std::env::var_os("CLAUDE_ENV_FILE"))
    else {
        return;
    };
    let line = format!(
        "export CHORUS_SESSION={session} CHORUS_INSTRUMENT={}\n",
        sender_args.instrument
    );
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::warn!("the session could not be named to the shell: {error}");
    }
}

/// SKL-13: what arrives while the agent works is told before it rests, not when its user next asks.
fn format_for_host(event: HookEvent, text: &str) -> Value {
    let context = |name: &str| json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": text } });
    match event {
        HookEvent::SessionStart => context("SessionStart"),
        HookEvent::UserPromptSubmit => context("UserPromptSubmit"),
        HookEvent::Stop | HookEvent::PreToolUse | HookEvent::PostToolUse => {
            json!({ "decision": "block", "reason": text })
        }
    }
}
