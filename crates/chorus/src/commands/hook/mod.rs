//! `chorus hook`: runs as a host's hook and reports new mail and frames between turns, and each edit to other sessions.
//!
//! It never blocks the host: it is quick, always exits with 0, and prints nothing when there is no news.

mod cursor_notice;
mod host_process;
pub mod news;
mod open_item_news;
mod report_progress;
mod stop_notice;
mod wake_progress;

use super::frame::{advise, file_edit, frame_context, locks};
use super::init::entry_source::{EntrySource, has_init_hook};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client, output};
pub use host_process::find_host_session;
use news::HookNews;
pub use report_progress::ReportProgress;
use serde::Deserialize;
use serde_json::json;
use std::io::{Read, Write};
use std::time::Duration;
pub use wake_progress::PlannedWake;

/// Max time of a hook, because the host and its user wait for it. After it the hub counts as unreachable.
const HOOK_TIMEOUT: Duration = Duration::from_secs(4);
/// Max bytes of the host's input. It is short, but may contain a pasted prompt.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The host's event
    event: HookEvent,
    #[command(flatten)]
    sender: frame_context::SenderArgs,
    /// What starts it: with `plugin` it does nothing where `chorus init` has installed the same hook
    #[arg(long, value_name = "WHAT")]
    from: Option<EntrySource>,
}

/// The hook events of Claude Code and compatible hosts, and those of Cursor, with their spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum HookEvent {
    SessionStart,
    UserPromptSubmit,
    Stop,
    PreToolUse,
    PostToolUse,
    #[value(name = "sessionStart")]
    CursorStart,
    #[value(name = "stop")]
    CursorStop,
}

impl HookEvent {
    /// The host's name of it.
    fn event_name(self) -> &'static str {
        match self {
            HookEvent::SessionStart => "SessionStart",
            HookEvent::UserPromptSubmit => "UserPromptSubmit",
            HookEvent::Stop => "Stop",
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::CursorStart => "sessionStart",
            HookEvent::CursorStop => "stop",
        }
    }
}

/// The fields of the host's input that are used.
#[derive(Debug, Default, Deserialize)]
struct HookInput {
    #[serde(default)]
    session_id: String,
    /// A hook has already kept the host from stopping in this turn; once is enough.
    #[serde(default)]
    stop_hook_active: bool,
    /// Cursor's name of the session.
    #[serde(default)]
    conversation_id: String,
    /// How a turn of Cursor ended, and how many follow-ups came before it.
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    loop_count: u32,
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
    let event = args.event;
    let sender_args = args.sender;
    let is_plugin = args.from == Some(EntrySource::Plugin);
    if is_plugin && has_init_hook(sender_args.instrument.as_str(), event.event_name()) {
        return Ok(());
    }
    let hook_run = async {
        let common = &command_client::pin_credentials(common)?;
        match event {
            HookEvent::PreToolUse => locks::run(common, locks::Args::for_hook(sender_args)).await,
            HookEvent::PostToolUse => {
                advise::run(common, advise::Args::for_hook(sender_args)).await
            }
            HookEvent::Stop => announce_mail(common, sender_args).await,
            HookEvent::SessionStart | HookEvent::UserPromptSubmit => {
                report_news(common, event.event_name(), sender_args).await
            }
            HookEvent::CursorStart | HookEvent::CursorStop => {
                cursor_notice::announce_mail(common, event, sender_args).await
            }
        }
    };
    match tokio::time::timeout(HOOK_TIMEOUT, hook_run).await {
        // A plugin is installed before its user registers (PLG-06).
        Ok(Err(fail)) if is_plugin && fail.exit_kind() == ExitKind::NotRegistered => Ok(()),
        Ok(outcome) => file_edit::report_only(outcome),
        Err(_) => file_edit::report_only(Err(Fail::usage_error(
            "the hub took too long; nothing was asked",
        ))),
    }
}

/// Reads the host's input, and fills in the session that it names.
async fn read_input(sender_args: &mut frame_context::SenderArgs) -> HookInput {
    // On its own thread, so that a host that never closes the input does not block the hook.
    let input = tokio::task::spawn_blocking(HookInput::read_stdin)
        .await
        .unwrap_or_default();
    if sender_args.session.is_none() {
        let named = [&input.session_id, &input.conversation_id];
        let mut sessions = named.iter().flat_map(|id| frame_context::parse_ident(id));
        sender_args.session = sessions.next();
    }
    input
}

fn session_name(sender_args: &frame_context::SenderArgs) -> String {
    let session = sender_args.session.as_ref();
    session.map(ToString::to_string).unwrap_or_default()
}

/// Says that mail waits, unless a hook did so in this turn already.
async fn announce_mail(
    common: &CommonArgs,
    mut sender_args: frame_context::SenderArgs,
) -> Result<(), Fail> {
    if read_input(&mut sender_args).await.stop_hook_active {
        return Ok(());
    }
    stop_notice::announce_mail(common, &session_name(&sender_args)).await
}

async fn report_news(
    common: &CommonArgs,
    host_event: &str,
    mut sender_args: frame_context::SenderArgs,
) -> Result<(), Fail> {
    read_input(&mut sender_args).await;
    if host_event == "SessionStart" {
        export_session(&sender_args);
    }
    if let (Some(session), Ok(files)) =
        (&sender_args.session, command_client::identity_files(common))
    {
        host_process::save_host_session(&files, session);
    }
    let session = session_name(&sender_args);
    let is_start = host_event == "SessionStart";
    let is_codex_start = is_start && sender_args.instrument.as_str() == "codex";
    let mut news = HookNews::gather_news(common, sender_args, is_start).await?;
    if is_codex_start && !session.is_empty() {
        news.save_thread(&session)?;
    }
    if let Some(text) = news.format_news() {
        let output = json!({ "hookEventName": host_event, "additionalContext": text });
        output::print_json(&json!({ "hookSpecificOutput": output }).to_string());
    }
    news.mark_reported(&session).await
}

/// Exports the session to the agent's shell commands, so that the session recognises the claims that they make.
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
        tracing::warn!("the session could not be exported to the shell: {error}");
    }
}
