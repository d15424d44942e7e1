//! A file that holds disk space in reserve. When the disk is full, it is given up so that the write-ahead log can be copied into the
//! database file, which frees the log's space: the hub recovers without a restart.

use crate::start_error::StartError;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Enough for the pages that the database file grows by when the longest write-ahead log is copied.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
/// Free space that the disk must have beyond the reserve before it is taken again.
const SPARE_FACTOR: u64 = 4;
/// Free space below which a hub without its reserve refuses writes. What is left is for copying the write-ahead log back: a log
/// that cannot be copied would take the next space that is freed, and the hub would stay full.
const MIN_FREE_BYTES: u64 = RESERVE_BYTES / 4;
/// The file in the data directory.
const RESERVE_FILE: &str = "reserve";
/// What `stat` counts the space of a file in.
const BLOCK_BYTES: u64 = 512;
/// Pause between attempts to take the reserve again.
const RETAKE_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct DiskReserve {
    path: PathBuf,
    is_held: bool,
    tried_at: Duration,
}

impl DiskReserve {
    /// Takes the reserve, if it is there from before or the disk has room for it.
    pub fn take(data_dir: &Path, now: Duration) -> Self {
        Self::take_with(data_dir, free_bytes(data_dir), now)
    }

    fn take_with(data_dir: &Path, free: Option<u64>, now: Duration) -> Self {
        let mut reserve = Self {
            path: data_dir.join(RESERVE_FILE),
            is_held: false,
            tried_at: now,
        };
        reserve.try_take(free);
        reserve
    }

    /// Gives the space up. False when there was none to give.
    pub fn release(&mut self, now: Duration) -> bool {
        self.tried_at = now;
        let was_held = std::mem::take(&mut self.is_held);
        if was_held && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the disk reserve could not be given up");
        }
        was_held
    }

    /// Whether the disk has so little space left that writes are refused. While the reserve is held it is not asked.
    pub fn is_space_short(&self) -> bool {
        !self.is_held
            && self
                .path
                .parent()
                .and_then(free_bytes)
                .is_some_and(|free| free < MIN_FREE_BYTES)
    }

    /// Takes the reserve again some time after it was given up.
    pub fn retake(&mut self, now: Duration) {
        if !self.is_held && now >= self.tried_at + RETAKE_INTERVAL {
            self.tried_at = now;
            self.try_take(self.path.parent().and_then(free_bytes));
        }
    }

    fn try_take(&mut self, free: Option<u64>) {
        // The one of the hub before this one: it is needed most where the disk has no room for another.
        if has_whole_reserve(&self.path) {
            self.is_held = true;
            return;
        }
        if free.is_none_or(|free| free < RESERVE_BYTES * SPARE_FACTOR) {
            tracing::warn!("the disk has no room for a reserve: a full disk may need a restart");
            // A part of one takes space and is no help when the disk is full.
            let _ = std::fs::remove_file(&self.path);
            return;
        }
        match allocate_file(&self.path) {
            Ok(()) => self.is_held = true,
            Err(error) => {
                tracing::warn!(%error, "the disk reserve could not be taken");
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }
}

/// Gives up a reserve that is there, before a database is opened on a full disk: SQLite needs space for that.
pub(super) fn release_for_start(data_dir: &Path) {
    let path = data_dir.join(RESERVE_FILE);
    let is_short = free_bytes(data_dir).is_some_and(|free| free < MIN_FREE_BYTES);
    if is_short && path.exists() {
        match std::fs::remove_file(&path) {
            Ok(()) => tracing::warn!("the disk is full; the disk reserve was given up to start"),
            Err(error) => tracing::warn!(%error, "the disk reserve could not be given up"),
        }
    }
}

/// Names a full disk as the reason why a hub on a file does not start. What SQLite says of it is often another thing.
pub(crate) fn explain_full_disk(error: StartError, data_dir: &Path) -> StartError {
    // A directory that could not be made has no file system; that of its parent is full.
    let free = data_dir.ancestors().find_map(free_bytes);
    explain_with(error, data_dir, free)
}

fn explain_with(error: StartError, data_dir: &Path, free: Option<u64>) -> StartError {
    let Some(free) = free.filter(|free| *free < MIN_FREE_BYTES) else {
        return error;
    };
    match error {
        StartError::Store { what, cause } => StartError::DiskFull {
            data_dir: data_dir.display().to_string(),
            free_kilobytes: free / 1024,
            needed_megabytes: RESERVE_BYTES / (1024 * 1024),
            fault: format!("{what}: {cause}"),
        },
        error @ (StartError::Locked(_)
        | StartError::Damaged { .. }
        | StartError::DiskFull { .. }
        | StartError::Bus(_)
        | StartError::OperatorKey(_)) => error,
    }
}

/// Whether the file holds the whole space: a copy of it may have none, because it is empty.
fn has_whole_reserve(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| {
        file.len() >= RESERVE_BYTES && file.blocks() * BLOCK_BYTES >= RESERVE_BYTES
    })
}

/// Bytes that the hub's user may still write on the disk of `path`.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let stats = statvfs(path).ok()?;
    Some(stats.f_bavail.saturating_mul(stats.f_frsize))
}

fn allocate_file(path: &Path) -> std::io::Result<()> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Option<u64> = Some(2 * RESERVE_BYTES);
    const PLENTY: Option<u64> = Some(RESERVE_BYTES * SPARE_FACTOR);

    /// A hub that was started again with little space left must still have the reserve to give.
    #[test]
    fn the_reserve_of_the_hub_before_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RESERVE_FILE);
        let now = Duration::ZERO;
        assert!(!DiskReserve::take_with(dir.path(), LITTLE, now).release(now));
        assert!(DiskReserve::take_with(dir.path(), PLENTY, now).is_held);
        assert!(DiskReserve::take_with(dir.path(), LITTLE, now).release(now));
        assert!(!path.exists(), "the space is free");
        // It has the length and no space, like a copy that left out what is zero.
        File::create(&path).unwrap().set_len(RESERVE_BYTES).unwrap();
        assert!(!DiskReserve::take_with(dir.path(), LITTLE, now).is_held);
        assert!(!path.exists());
    }

    /// Once there is room again, so that the next full disk heals too.
    #[test]
    fn a_reserve_that_was_given_up_is_taken_again_after_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RESERVE_FILE);
        let released_at = Duration::from_secs(100);
        let mut reserve = DiskReserve::take_with(dir.path(), PLENTY, Duration::ZERO);
        assert!(reserve.release(released_at));
        reserve.retake(released_at + RETAKE_INTERVAL - Duration::from_secs(1));
        assert!(!path.exists(), "the space may be needed still");
        reserve.retake(released_at + RETAKE_INTERVAL);
        assert!(has_whole_reserve(&path) && reserve.release(released_at));
    }

    /// SQLite's own message names another cause, or none.
    #[test]
    fn a_start_that_fails_on_a_full_disk_names_the_disk() {
        let fault = || StartError::Store {
            what: "the database could not be opened".into(),
            cause: "disk I/O error".into(),
        };
        let explain = |free| explain_with(fault(), Path::new("/data"), free).to_string();
        assert_eq!(
            explain(Some(3 * 1024)),
            "the disk of /data is full (3 KB are left): the database could not be opened: disk I/O error; \
             free at least 16 MB and start the hub again"
        );
        let plain = fault().to_string();
        assert_eq!(explain(Some(MIN_FREE_BYTES)), plain);
        assert_eq!(explain(None), plain);
    }
}
