//! A file that holds disk space in reserve. When the disk is full, it is given up so that the write-ahead log can be copied into the
//! database file, which frees the log's space: the hub recovers without a restart.

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Enough for the pages that the database file grows by when the longest write-ahead log is copied.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
/// Free space that the disk must have beyond the reserve before it is taken again.
const SPARE_FACTOR: u64 = 4;
/// Free space below which a hub without its reserve refuses writes. What is left is for copying the write-ahead log back: a log
/// that cannot be copied would take the next space that is freed, and the hub would stay full.
const MIN_FREE_BYTES: u64 = RESERVE_BYTES / 4;
/// Pause between attempts to take the reserve again.
const RETAKE_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct DiskReserve {
    path: PathBuf,
    is_held: bool,
    tried_at: Duration,
}

impl DiskReserve {
    /// Takes the reserve if the disk has room for it.
    pub fn take(data_dir: &Path, now: Duration) -> Self {
        let mut reserve = Self {
            path: data_dir.join("reserve"),
            is_held: false,
            tried_at: now,
        };
        reserve.try_take();
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
            self.try_take();
        }
    }

    fn try_take(&mut self) {
        let has_room = self
            .path
            .parent()
            .and_then(free_bytes)
            .is_some_and(|free| free >= RESERVE_BYTES * SPARE_FACTOR);
        if !has_room {
            tracing::warn!("the disk has no room for a reserve: a full disk may need a restart");
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
