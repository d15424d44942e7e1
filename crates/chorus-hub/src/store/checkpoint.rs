//! SQLite checkpoints on a thread of their own: copies the write-ahead log into the database file while the writer goes on.

use super::{SqliteFile, disk_reserve, sqlite};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often the thread checks. It copies after [`ENOUGH_GROUPS`] commits, or after [`MAX_CHECKS_WAITED`] checks with fewer.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Commits worth a copy. A page that several of them wrote is copied once, and each copy syncs the database file.
const ENOUGH_GROUPS: u64 = 100;
/// After five seconds few commits are copied too, so that a quiet hub leaves its database in one file.
const MAX_CHECKS_WAITED: u64 = 20;
/// Pages above which the writer finishes the checkpoint itself. The write-ahead log restarts from its beginning only when it is
/// fully copied, which never happens while the writer writes. What is left for the writer is a fraction of a second's writes.
const MAX_WAL_PAGES: i64 = 16_000;
/// Fewest pages at which the writer finishes the checkpoint, however small the disk is.
const MIN_WAL_PAGES: i64 = 500;
/// On a disk with little space left, the write-ahead log may take this part of it.
const WAL_SHARE_OF_FREE_SPACE: i64 = 8;
/// Pages that cannot be copied because a reader holds an old snapshot, after which writes are refused: 1 GiB.
pub(super) const MAX_UNCOPIED_PAGES: i64 = 262_144;
const PAGE_BYTES: i64 = 4_096;

/// The handle of the checkpoint thread; dropping it stops the thread.
pub(super) struct CheckpointThread {
    state: Arc<CheckpointState>,
    _stop: Sender<()>,
}

/// State shared by the writer and the checkpoint thread.
#[derive(Default)]
struct CheckpointState {
    /// Groups committed since the last checkpoint.
    uncopied_groups: AtomicU64,
    /// The writer finishes the checkpoint after its next group.
    is_wal_long: AtomicBool,
    /// More pages than the file's bound could not be copied.
    is_wal_over_bound: AtomicBool,
}

impl CheckpointThread {
    /// `None` when the thread or its connection cannot be opened: then the write-ahead log grows until the next start.
    pub fn spawn(file: &SqliteFile) -> Option<Self> {
        // It reads no pages but those of the log.
        let connection = sqlite::open_writer(&file.path, file.page_caches.reader).ok()?;
        let (stop, stopped) = channel();
        let state = Arc::<CheckpointState>::default();
        let thread_state = state.clone();
        let file = file.clone();
        let thread = std::thread::Builder::new().name("chorus-checkpoint".into());
        thread
            .spawn(move || run_checkpoints(&connection, &file, &stopped, &thread_state))
            .ok()?;
        Some(Self { state, _stop: stop })
    }

    pub fn is_wal_over_bound(&self) -> bool {
        self.state.is_wal_over_bound.load(Ordering::Relaxed)
    }

    /// The writer calls this after each group.
    pub fn on_group_committed(&self, connection: &rusqlite::Connection) {
        self.state.uncopied_groups.fetch_add(1, Ordering::Relaxed);
        if self.state.is_wal_long.swap(false, Ordering::Relaxed)
            && let Err(error) = sqlite::checkpoint_wal(connection)
        {
            tracing::warn!(%error, "the checkpoint of the write-ahead log failed");
        }
    }
}

fn run_checkpoints(
    connection: &rusqlite::Connection,
    file: &SqliteFile,
    stopped: &Receiver<()>,
    state: &CheckpointState,
) {
    let mut checks = 0;
    while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        checks += 1;
        let groups = state.uncopied_groups.load(Ordering::Relaxed);
        let is_due = groups >= ENOUGH_GROUPS || (groups > 0 && checks >= MAX_CHECKS_WAITED);
        // Over the bound no group is committed, and the log is copied as soon as its reader is gone.
        if !is_due && !state.is_wal_over_bound.load(Ordering::Relaxed) {
            continue;
        }
        checks = 0;
        state.uncopied_groups.fetch_sub(groups, Ordering::Relaxed);
        match sqlite::checkpoint_wal(connection) {
            Ok((pages, copied)) => {
                let free = disk_reserve::free_bytes(&file.path);
                state
                    .is_wal_long
                    .store(pages > max_wal_pages(free), Ordering::Relaxed);
                state
                    .is_wal_over_bound
                    .store(pages - copied > file.max_uncopied_pages, Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(%error, "the checkpoint of the write-ahead log failed"),
        }
    }
}

/// Pages at which the writer finishes the checkpoint. A disk with little space left has a shorter log.
fn max_wal_pages(free_bytes: Option<u64>) -> i64 {
    free_bytes.map_or(MAX_WAL_PAGES, |free| {
        let share = i64::try_from(free).unwrap_or(i64::MAX) / PAGE_BYTES / WAL_SHARE_OF_FREE_SPACE;
        share.clamp(MIN_WAL_PAGES, MAX_WAL_PAGES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the log of a hub on a small disk takes the space that copying it back needs.
    #[test]
    fn the_log_takes_an_eighth_of_a_small_disk() {
        let megabytes = |count: u64| Some(count * 1024 * 1024);
        assert_eq!(max_wal_pages(megabytes(80)), 2_560);
        assert_eq!(max_wal_pages(megabytes(1)), MIN_WAL_PAGES);
        assert_eq!(max_wal_pages(megabytes(100_000)), MAX_WAL_PAGES);
        assert_eq!(max_wal_pages(None), MAX_WAL_PAGES);
    }
}
