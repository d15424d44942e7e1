//! `chorus serve`: runs a hub until it gets a stop signal.

mod acme_options;
mod config_duration;
mod console_link;
mod listen_address;
mod notify;
mod operator_file;
mod option_text;
mod options;
mod otlp_option;
mod quota_option;
mod start_silence;
mod welcome;

use crate::fail::Fail;
use crate::machine_memory::MIN_CONNECTIONS;
use crate::stop_signal::StopSignal;
use chorus_server::ServerSettings;
use operator_file::OperatorFile;
use options::{LogFormat, ServeOptions};
use start_silence::StartSilence;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, WorkerGuard};
use tracing_subscriber::fmt::writer::MakeWriterExt;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The configuration file; default: chorus.toml in the working directory, if it exists
    #[arg(long, value_name = "FILE", env = "CHORUS_CONFIG")]
    config: Option<PathBuf>,
    /// Start although files of the database are damaged, and lose what cannot be read. Only here and not in the configuration
    /// file, so that the next start is careful again
    #[arg(long)]
    accept_damage: bool,
    #[command(flatten)]
    options: ServeOptions,
}

pub async fn run(args: Args) -> Result<(), Fail> {
    let options = args
        .options
        .with_fallback(ServeOptions::from_file(args.config.as_deref())?);
    let silence = StartSilence::for_options(&options);
    let _log_writer = init_logging(&options, silence.clone())?;
    let is_explicit = options.has_max_connections();
    let memory_total = options.memory_total();
    let mut settings = options.into_settings()?;
    settings.hub.accept_damage = args.accept_damage;
    let mut stop = StopSignal::watch()?;
    if let Some(files) = raise_file_limit() {
        settings.max_connections = fit_connections(settings.max_connections, is_explicit, files)?;
    }
    let operator = make_operator(&mut settings);
    let max_connections = settings.max_connections;
    let server = chorus_server::start_server(settings)
        .await
        .map_err(|e| Fail::usage_error(e.to_string()))?;
    memory_total.log_figure();
    tracing::info!(max_connections, "connections that this hub may have");
    let operator = report_operator(operator);
    let mut out = std::io::stdout().lock();
    let printed = writeln!(out, "chorus listening on {}", server.url()).and_then(|()| out.flush());
    drop(out);
    printed.map_err(|e| Fail::usage_error(format!("standard output: {e}")))?;
    welcome::print_welcome(server.hub(), &server.url(), operator.as_ref()).await;
    silence.end();
    let fatal_fault = tokio::select! {
        () = stop.wait_requested() => None,
        () = notify::notify_when_ready(server.hub()) => None,
        fault = server.hub().wait_fatal_fault() => Some(fault),
    };
    notify::notify_stopping();
    tracing::info!("stopping; a second signal ends the process at once");
    server.stop().await;
    match fatal_fault {
        None => Ok(()),
        Some(fault) => Err(Fail::usage_error(fault)),
    }
}

/// Gives the hub the operator key of its data directory, and makes one at its first start. A hub that was given keys has its
/// operators already, and hubs that share a database are given the same ones.
fn make_operator(settings: &mut ServerSettings) -> Option<Result<OperatorFile, Fail>> {
    let hub = &mut settings.hub;
    if !hub.operator_keys.is_empty() || hub.database_url.is_some() {
        return None;
    }
    let operator = OperatorFile::open(&hub.data_dir);
    if let Ok(operator) = &operator {
        hub.operator_keys.push(operator.key.clone());
    }
    Some(operator)
}

/// Logs where a new key is, never the key. A data directory that cannot be written has stopped the start before this, with a
/// better message.
fn report_operator(operator: Option<Result<OperatorFile, Fail>>) -> Option<OperatorFile> {
    match operator? {
        Ok(operator) => {
            if operator.is_new {
                tracing::info!(file = %operator.path.display(), "an operator key was made");
            }
            Some(operator)
        }
        Err(fail) => {
            tracing::warn!("this hub has no operator: {fail}");
            None
        }
    }
}

/// Log lines that wait for standard error. Beyond it lines are dropped and counted: a reader of the log that hangs must not stop
/// the hub.
const LOG_LINES_WAITING: usize = 16_384;
/// How often dropped lines are reported.
const DROPPED_LINES_INTERVAL: Duration = Duration::from_secs(10);

/// Starts logging. The returned guard writes the waiting lines when it is dropped.
fn init_logging(options: &ServeOptions, silence: StartSilence) -> Result<WorkerGuard, Fail> {
    let filter = options.log.as_deref().unwrap_or("info");
    let filter = tracing_subscriber::EnvFilter::try_new(filter);
    let filter = filter.map_err(|e| {
        Fail::usage_error(format!(
            "--log {}: {e}",
            options.log.as_deref().unwrap_or_default()
        ))
    })?;
    // rmcp logs whole calls and answers, which contain users' texts and single-use tokens.
    let filter = match "rmcp=off".parse() {
        Ok(silent) => filter.add_directive(silent),
        Err(_) => filter,
    };
    let (writer, guard) = tracing_appender::non_blocking::NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_WAITING)
        .thread_name("chorus-log")
        .finish(std::io::stderr());
    let dropped_lines = writer.error_counter();
    let writer = writer.with_filter(move |meta| silence.permits(meta.level()));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    let _ = match options.log_format.unwrap_or_default() {
        LogFormat::Text => {
            let allows_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let is_colored = allows_color && std::io::stderr().is_terminal();
            log.with_ansi(is_colored).try_init()
        }
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    tokio::spawn(report_dropped_lines(dropped_lines));
    Ok(guard)
}

/// Reports how many log lines were dropped, as a metric and, once the log takes lines again, as a line.
async fn report_dropped_lines(dropped_lines: ErrorCounter) {
    let mut reported = 0;
    loop {
        tokio::time::sleep(DROPPED_LINES_INTERVAL).await;
        let dropped = dropped_lines.dropped_lines();
        if dropped > reported {
            metrics::counter!("chorus_log_lines_dropped_total")
                .increment((dropped - reported) as u64);
            tracing::warn!(
                lines = dropped - reported,
                "log lines were dropped: the log was not read"
            );
            reported = dropped;
        }
    }
}

/// File descriptors reserved for the hub itself: read pool, write-ahead log, webhooks in flight, unverified connections.
const RESERVED_FILES: usize = 512;

/// The connections that the limit of open files leaves room for. A hub that was asked for more does not start, and neither does
/// one that has room for hardly any: it would run, and refuse its clients.
fn fit_connections(wanted: usize, is_explicit: bool, files: usize) -> Result<usize, Fail> {
    let least = match is_explicit {
        true => wanted,
        false => wanted.min(MIN_CONNECTIONS),
    };
    let needed = least.saturating_add(RESERVED_FILES);
    if files < needed {
        return Err(Fail::usage_error(format!(
            "the limit of open files is {files}, and this hub needs {needed}: {RESERVED_FILES} of its own and {least} for connections; raise it with ulimit -n, or LimitNOFILE of the unit"
        )));
    }
    Ok(wanted.min(files - RESERVED_FILES))
}

/// Raises the soft limit of open files to the hard limit and returns it. Every open stream is a file descriptor, and the
/// soft limit of many systems is only 1024.
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
