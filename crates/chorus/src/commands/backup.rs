//! `chorus admin backup`: one copy of a hub's data, or dated copies at an interval.

use super::duration::{format_duration, parse_duration};
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_hub::Clock;
use chorus_hub::ops::{DatedCopy, backup_data_dir, make_dated_copy};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The hub's data directory
    #[arg(
        long,
        value_name = "DIR",
        env = "CHORUS_DATA_DIR",
        default_value = "chorus-data"
    )]
    data_dir: PathBuf,
    /// Make the copy in a dated directory under TO, and keep the newest N copies there
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Go on making copies at this interval (10m, 1h, 1d); a copy that fails is reported, and the next one is tried
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "keep")]
    every: Option<Duration>,
    /// The target of the copy, a new data directory; with --keep, the directory of all copies
    to: PathBuf,
}

pub async fn run(common: &CommonArgs, args: BackupArgs) -> Result<(), Fail> {
    let BackupArgs {
        data_dir,
        keep,
        every,
        to,
    } = args;
    match (keep, every) {
        (None, _) => {
            let file = backup_data_dir(&data_dir, &to).map_err(describe_failure)?;
            let output = json!({ "backup": file.display().to_string() });
            output::print_result(common.json, &output, || {
                format!("copied to {}", file.display())
            });
            Ok(())
        }
        (Some(keep), None) => {
            let copy = make_copy(&data_dir, &to, keep).await?;
            print_copy(common, &copy);
            Ok(())
        }
        (Some(keep), Some(every)) => make_copies(common, &data_dir, &to, keep, every).await,
    }
}

/// Makes copies until it is told to stop, also after some have failed: a full disk is emptied, a hub comes back.
async fn make_copies(
    common: &CommonArgs,
    data_dir: &Path,
    to: &Path,
    keep: u32,
    every: Duration,
) -> Result<(), Fail> {
    let mut stop = StopSignal::watch()?;
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.wait_requested() => return Ok(()),
            _ = ticks.tick() => {}
        }
        match make_copy(data_dir, to, keep).await {
            Ok(copy) => print_copy(common, &copy),
            Err(failure) => {
                failure.report(common.json);
                if !common.json {
                    anstream::eprintln!("the next copy is tried in {}", format_duration(every));
                }
            }
        }
    }
}

/// On a thread of its own, because it reads and writes the whole database.
async fn make_copy(data_dir: &Path, to: &Path, keep: u32) -> Result<DatedCopy, Fail> {
    let data_dir = data_dir.to_owned();
    let to = to.to_owned();
    let now = Clock::system().now();
    let copying =
        tokio::task::spawn_blocking(move || make_dated_copy(&data_dir, &to, keep as usize, now));
    copying
        .await
        .map_err(|e| Fail::usage_error(e.to_string()))?
        .map_err(describe_failure)
}

fn print_copy(common: &CommonArgs, copy: &DatedCopy) {
    let output = json!({
        "backup": copy.path.display().to_string(),
        "removed": copy.removed.iter().map(|old| old.display().to_string()).collect::<Vec<_>>(),
    });
    output::print_result(common.json, &output, || {
        let removed = match copy.removed.len() {
            0 => String::new(),
            count => format!(", {count} removed"),
        };
        format!("copied to {}{removed}", copy.path.display())
    });
}

/// The user can read the data directory, so the internal cause may be shown.
fn describe_failure(error: chorus_wire::Error) -> Fail {
    Fail::usage_error(format!(
        "no copy was made: {}",
        error.cause.unwrap_or(error.message)
    ))
}
