//! Copying SQLite's write-ahead log back into the database file, beside the writer, so that no send waits for it.

use super::sqlite;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often the copier looks; it copies when there are enough groups to share the cost, or some that have waited.
const EVERY: Duration = Duration::from_millis(250);
const GROUPS: u64 = 100;
const LOOKS: u64 = 20;
/// Pages above which the writer finishes the copy itself. While it writes, the log never becomes empty and so never starts
/// again from its beginning; what is left for it then is a fraction of a second's writes.
const LONG: i64 = 16_000;

/// Ends with the writer that holds it.
pub(super) struct Checkpoint {
    seen: Arc<Seen>,
    _until: Sender<()>,
}

/// What the writer and the copier tell each other.
#[derive(Default)]
struct Seen {
    /// Groups committed since the last copy.
    groups: AtomicU64,
    /// The writer is to finish the copy.
    long: AtomicBool,
}

impl Checkpoint {
    /// None when the thread or its connection cannot be had: then the writer's log grows until the next start.
    pub fn start(path: &Path) -> Option<Self> {
        let connection = sqlite::open_writer(path).ok()?;
        let (until, ended) = channel();
        let seen = Arc::<Seen>::default();
        let told = seen.clone();
        let thread = std::thread::Builder::new().name("chorus-checkpoint".into());
        thread.spawn(move || run(&connection, &ended, &told)).ok()?;
        Some(Self {
            seen,
            _until: until,
        })
    }

    /// The writer's part, after each group.
    pub fn finish(&self, connection: &rusqlite::Connection) {
        self.seen.groups.fetch_add(1, Ordering::Relaxed);
        if self.seen.long.swap(false, Ordering::Relaxed)
            && let Err(error) = sqlite::checkpoint(connection)
        {
            tracing::warn!(%error, "the write-ahead log could not be copied");
        }
    }
}

fn run(connection: &rusqlite::Connection, ended: &Receiver<()>, seen: &Seen) {
    let mut looks = 0;
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        looks += 1;
        let groups = seen.groups.load(Ordering::Relaxed);
        if groups == 0 || (groups < GROUPS && looks < LOOKS) {
            continue;
        }
        looks = 0;
        seen.groups.fetch_sub(groups, Ordering::Relaxed);
        match sqlite::checkpoint(connection) {
            Ok((pages, _)) => seen.long.store(pages > LONG, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be copied"),
        }
    }
}
