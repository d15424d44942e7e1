//! `chorus wake`: wakes an idle session of a host when mail comes (D-115).

pub mod host_watch;
pub mod method;
pub mod schedule;
pub mod session_lock;
mod wake_text;
pub mod waker;

use super::frame::frame_context::parse_ident;
use super::init::entry_source::EntrySource;
use super::init::wake_entries::has_init_wakes;
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::frame::ScopeIdent;
use host_watch::HostWatch;
use method::WakeMethod;
use serde::Deserialize;
use session_lock::SessionLock;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use waker::MailWaker;

/// The exit code by which a hook of Claude Code wakes its session.
const WOKEN_EXIT: i32 = 2;
/// Max time for the host's input, which names the session.
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Max bytes of the host's input.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    method: MethodArgs,
    /// The file with the token of the gateway's hooks, for --openclaw
    #[arg(long, value_name = "FILE", requires = "openclaw")]
    token_file: Option<PathBuf>,
    /// This session's id; default: the host's, or one per host process
    #[arg(long, value_name = "ID", value_parser = parse_ident)]
    session: Option<ScopeIdent>,
    /// Max wakes of the session in an hour
    #[arg(long, value_name = "N", default_value_t = schedule::SESSION_WAKES, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,
    /// What starts it: with `plugin` it ends at once where `chorus init` lets mail wake the sessions
    #[arg(long, value_name = "WHAT")]
    from: Option<EntrySource>,
}

/// Exactly one of these.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct MethodArgs {
    /// Print one line for each batch of messages, for a monitor of Claude Code
    #[arg(long)]
    lines: bool,
    /// Print the first batch on standard error and end with exit code 2, for a hook with asyncRewake
    #[arg(long)]
    once: bool,
    /// Queue a notice for this Codex thread
    #[arg(long, value_name = "THREAD")]
    codex: Option<String>,
    /// Post a notice to the wake hook of the OpenClaw gateway at this URL
    #[arg(long, value_name = "URL", requires = "token_file")]
    openclaw: Option<String>,
    /// Run this with sh for each batch, with the batch as JSON on standard input
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
}

impl Args {
    fn wake_method(&self) -> Result<WakeMethod, Fail> {
        let openclaw = self.method.openclaw.clone().zip(self.token_file.clone());
        let ways = [
            self.method.lines.then_some(WakeMethod::Lines),
            self.method.once.then_some(WakeMethod::Once),
            self.method.codex.clone().map(WakeMethod::Codex),
            openclaw.map(|(url, token_file)| WakeMethod::Openclaw { url, token_file }),
            self.method.exec.clone().map(WakeMethod::Exec),
        ];
        ways.into_iter()
            .flatten()
            .next()
            .ok_or_else(|| Fail::usage_error("which method? see: chorus wake --help"))
    }
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let method = args.wake_method()?;
    if method.ends_after_wake() && !is_attended() {
        return Ok(());
    }
    if args.from == Some(EntrySource::Plugin) && has_init_wakes() {
        return Ok(());
    }
    let session = find_session(&args, &method).await?;
    let Some(lock) = SessionLock::acquire(&session)? else {
        return Ok(());
    };
    let mut stop = StopSignal::watch()?;
    let host = HostWatch::begin(matches!(method, WakeMethod::Lines));
    let waker = MailWaker {
        common: common.clone(),
        session: session.to_string(),
        method,
        max_wakes: args.most,
        open_calls: Arc::default(),
    };
    tokio::select! {
        () = waker.run_until_woken() => {}
        () = host.wait_ended() => return Ok(()),
        () = stop.wait_requested() => return Ok(()),
    }
    drop(lock);
    std::process::exit(WOKEN_EXIT);
}

/// Whether a person uses the session. Without one, such as under `claude -p`, the host runs these hooks in the foreground and
/// would wait for mail.
fn is_attended() -> bool {
    std::env::var("CLAUDE_CODE_SESSION_ATTENDED").is_ok_and(|value| value == "1")
}

/// The field of a hook's input that is used.
#[derive(Debug, Default, Deserialize)]
struct SessionInput {
    #[serde(default)]
    session_id: String,
}

/// The session as its hooks and tools name it.
async fn find_session(args: &Args, method: &WakeMethod) -> Result<ScopeIdent, Fail> {
    let from_host = match method {
        WakeMethod::Once => read_session_id().await,
        WakeMethod::Codex(thread) => parse_ident(thread).ok(),
        WakeMethod::Lines | WakeMethod::Openclaw { .. } | WakeMethod::Exec(_) => None,
    };
    let from_variable = || {
        let text = std::env::var("CLAUDE_CODE_SESSION_ID").ok()?;
        parse_ident(&text).ok()
    };
    let process_session = format!("p{}", std::os::unix::process::parent_id());
    match args.session.clone().or(from_host).or_else(from_variable) {
        Some(session) => Ok(session),
        None => parse_ident(&process_session).map_err(Fail::usage_error),
    }
}

/// The session in a hook's input, which the host writes to standard input.
async fn read_session_id() -> Option<ScopeIdent> {
    if std::io::stdin().is_terminal() {
        return None;
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        let read = std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES)
            .read_to_string(&mut text);
        read.ok()?;
        serde_json::from_str::<SessionInput>(&text).ok()
    });
    let input = tokio::time::timeout(INPUT_TIMEOUT, read)
        .await
        .ok()?
        .ok()??;
    parse_ident(&input.session_id).ok()
}
