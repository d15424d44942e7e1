//! `chorus hook`: what a host's hooks run: new mail and frames between turns, a word about every edit. Never in the way: it is
//! quick, always ends with 0, and says nothing when nothing is new.

mod news;
mod told;

use super::frame::{advise, hook, locks, voice};
use crate::{cli::Common, fail::Fail, out};
use news::News;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;
pub use told::Told;

/// A host waits for its hooks, and a person for the host: after this a hub counts as away.
const PATIENCE: Duration = Duration::from_secs(4);
/// What a host says of a turn is short, but a prompt may be pasted into it.
const MOST: u64 = 16 * 1024 * 1024;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What the host is doing
    event: Event,
    #[command(flatten)]
    voice: voice::Voice,
}

/// The events of hosts of the Claude Code kind, spelt as they spell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Event {
    SessionStart,
    UserPromptSubmit,
    Stop,
    PreToolUse,
    PostToolUse,
}

/// What the host says on standard input, as far as we need it.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    session_id: String,
    /// It stopped before in this turn, because of a hook: once is enough.
    #[serde(default)]
    stop_hook_active: bool,
}

impl Said {
    fn read() -> Self {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MOST).read_to_string(&mut text);
        read.ok()
            .and_then(|_| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let (event, voice) = (args.event, args.voice);
    let act = async {
        match event {
            Event::PreToolUse => locks::run(common, locks::Args::hooked(voice)).await,
            Event::PostToolUse => advise::run(common, advise::Args::hooked(voice)).await,
            Event::SessionStart | Event::UserPromptSubmit | Event::Stop => {
                between_turns(common, event, voice).await
            }
        }
    };
    match tokio::time::timeout(PATIENCE, act).await {
        Ok(outcome) => hook::forgive(outcome),
        Err(_) => hook::forgive(Err(Fail::usage("the hub took too long; nothing was asked"))),
    }
}

async fn between_turns(common: &Common, event: Event, mut voice: voice::Voice) -> Result<(), Fail> {
    // On a thread of its own, so that a host that never closes our input does not hold us either.
    let said = tokio::task::spawn_blocking(Said::read)
        .await
        .unwrap_or_default();
    if voice.session.is_none() {
        voice.session = voice::ident(&said.session_id).ok();
    }
    if event == Event::SessionStart {
        name_the_session(&voice);
    }
    if event == Event::Stop && said.stop_hook_active {
        return Ok(());
    }
    let news = News::gather(common, voice, event != Event::Stop).await?;
    if let Some(text) = news.text() {
        out::line(&for_the_host(event, &text).to_string());
    }
    news.done().await
}

/// The agent's own shell commands are of the same session as its hooks: a claim it makes is known as its own.
fn name_the_session(voice: &voice::Voice) {
    let (Some(session), Some(file)) = (&voice.session, std::env::var_os("CLAUDE_ENV_FILE")) else {
        return;
    };
    let line = format!(
        "export CHORUS_SESSION={session} CHORUS_INSTRUMENT={}\n",
        voice.instrument
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
fn for_the_host(event: Event, text: &str) -> Value {
    let context = |name: &str| json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": text } });
    match event {
        Event::SessionStart => context("SessionStart"),
        Event::UserPromptSubmit => context("UserPromptSubmit"),
        Event::Stop | Event::PreToolUse | Event::PostToolUse => {
            json!({ "decision": "block", "reason": text })
        }
    }
}
