//! `chorus serve`: run a hub until told to stop.

mod notify;
mod options;

use crate::fail::Fail;
use crate::signals::Stop;
use options::{LogFormat, Options};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read what is not given otherwise from this file; without it, from chorus.toml here if there is one
    #[arg(long, value_name = "FILE", env = "CHORUS_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

pub async fn run(args: Args) -> Result<(), Fail> {
    let options = args.options.or(Options::from_file(args.config.as_deref())?);
    log(&options)?;
    let mut settings = options.settings()?;
    let mut stop = Stop::watch()?;
    if let Some(files) = raise_file_limit() {
        // Some stay free for the database, for webhooks and for what else the hub opens.
        settings.max_connections = settings
            .max_connections
            .min(files.saturating_sub(FILES_KEPT).max(1));
    }
    // TLS of the hub and of its webhooks: one provider for the process.
    let running = chorus_server::start(settings)
        .await
        .map_err(|e| Fail::usage(e.to_string()))?;
    let mut out = std::io::stdout().lock();
    let told = writeln!(out, "chorus listening on {}", running.url()).and_then(|()| out.flush());
    drop(out);
    told.map_err(|e| Fail::usage(format!("standard output: {e}")))?;
    tokio::select! {
        () = stop.asked() => {}
        () = notify::when_ready(running.hub()) => {}
    }
    notify::stopping();
    tracing::info!("stopping; a second signal ends it at once");
    running.stop().await;
    Ok(())
}

fn log(options: &Options) -> Result<(), Fail> {
    let filter = options.log.as_deref().unwrap_or("info");
    let filter = tracing_subscriber::EnvFilter::try_new(filter);
    let filter = filter.map_err(|e| {
        Fail::usage(format!(
            "--log {}: {e}",
            options.log.as_deref().unwrap_or_default()
        ))
    })?;
    // The library behind the tools prints whole calls and answers: the words of others, and single-use tokens.
    let filter = match "rmcp=off".parse() {
        Ok(silent) => filter.add_directive(silent),
        Err(_) => filter,
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let _ = match options.log_format.unwrap_or_default() {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Files that connections leave to the hub itself: readers, the write-ahead log, webhooks under way.
const FILES_KEPT: usize = 512;

/// Every open stream is a file: the soft limit of many systems is 1024, the hard one is meant for servers. How many there may be.
fn raise_file_limit() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    ) {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
        return limit.current.map(|files| files as usize);
    }
    limit.maximum.map(|files| files as usize)
}
