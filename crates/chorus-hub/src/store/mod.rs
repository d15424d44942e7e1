//! The store: the log and the other tables on SQLite or PostgreSQL. One writer commits in groups, then publishes the entries.

pub(crate) mod accords;
mod activity;
mod agent;
pub(crate) mod agent_keys;
pub(crate) mod artifacts;
pub(crate) mod cache_invalidation;
pub(crate) mod channel_deliveries;
pub(crate) mod channel_entries;
pub(crate) mod channel_invitations;
pub(crate) mod channel_tokens;
pub(crate) mod channels;
mod checkpoint;
mod commit_meters;
mod commit_retry;
mod commit_span;
mod compact_ledger;
mod connection;
pub(crate) mod connection_strings;
pub(crate) mod contacts;
mod copy_to_postgres;
pub(crate) mod counters;
mod data_dir_lock;
mod delivered_marks;
mod departed_agents;
mod disk_reserve;
mod entry_publisher;
mod erased_work;
mod file_damage;
mod file_upkeep;
pub(crate) mod grants;
mod group_commit;
pub(crate) mod idempotency;
mod ids;
pub(crate) mod invites;
pub(crate) mod job_board;
pub(crate) mod job_expiry;
mod job_state;
pub(crate) mod job_updates;
pub(crate) mod jobs;
pub(crate) mod key_rotations;
pub(crate) mod ledger;
pub(crate) mod log;
pub(crate) mod log_start;
mod log_throttle;
pub(crate) mod market_totals;
pub(crate) mod member_state;
pub(crate) mod message_scan;
pub(crate) mod messages;
mod migrations;
pub(crate) mod name_skeletons;
pub(crate) mod open_items;
pub(crate) mod orgs;
pub(crate) mod outbox;
pub(crate) mod owner_usage;
mod participant_index;
mod postgres;
mod postgres_tls;
mod postgres_url;
pub(crate) mod principals;
mod read_pool;
pub(crate) mod reputation;
pub(crate) mod request_answers;
pub(crate) mod request_scope;
pub(crate) mod retention;
pub(crate) mod seal_record;
pub(crate) mod session_tokens;
mod simulated_connection;
pub(crate) mod skills;
mod sql_dialect;
mod sql_value;
mod sqlite;
mod stopped_database;
mod sync_clock;
#[cfg(test)]
mod tests;
mod transaction_fault;
pub(crate) mod trimmed_streams;
mod wal_check;
mod write_group;
mod write_request;
mod write_txn;
mod write_until_done;
mod writer;
mod writer_connection;
mod writer_thread;

pub(crate) use activity::record_activity;
pub use agent::{Agent, ContactLimits};
pub(crate) use agent_keys::AgentKeyRow;
pub(crate) use cache_invalidation::{CacheInvalidation, EndedKey};
pub(crate) use connection::DbConnection;
pub(crate) use copy_to_postgres::copy_to_postgres;
pub(crate) use disk_reserve::{explain_full_disk, free_bytes};
pub(crate) use entry_publisher::{ClusterPeers, EntryPublisher};
pub use idempotency::IdempotencyKey;
pub(crate) use ids::RowId;
pub use ids::{
    AccountId, AgentId, ChannelId, JobId, LogSeq, MemberId, OpenItemId, OrgId, OutboxRowId,
    OwnerId, PostingId, SubjectId,
};
pub(crate) use job_state::{JobEvent, JobState};
pub(crate) use log::{DeliveryState, EntryKind, LogEntry, NewLogEntry, SharedPart};
pub(crate) use sql_value::{ColumnReader, DbError, FromRow, SqlParam, SqlRow};
pub(crate) use stopped_database::{advance_after_restore, forget_seal_key};
pub(crate) use write_txn::{HubSettings, WriteTxn};

use crate::memory_bounds::PageCaches;
use crate::simulation::SimulatedDatabase;
use crate::start_error::StartError;
use crate::{Clock, Result};
use chorus_wire::{Error, secret::Secret, time::UnixMicros};
use commit_span::CommitSpan;
use erased_work::{AnyAnswer, ErasedWrite, erase_read, erase_write, take_answer};
use futures_util::future::BoxFuture;
use request_scope::{ClaimedWrite, RequestScope};
use serde::{Serialize, de::DeserializeOwned};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use write_request::WriteReply;

/// The database file in the data directory.
pub(crate) const DATABASE_FILE: &str = "chorus.db";

/// Which database the store uses.
#[derive(Clone, Debug)]
pub(crate) enum DatabaseUrl {
    Sqlite(SqliteFile),
    Postgres(Secret),
    /// The database of a simulation (D-110).
    Simulated(Arc<dyn SimulatedDatabase>),
}

impl DatabaseUrl {
    /// The database file of a hub that has no database server.
    pub fn in_data_dir(data_dir: &Path, page_caches: PageCaches) -> Self {
        Self::Sqlite(SqliteFile {
            path: data_dir.join(DATABASE_FILE),
            page_caches,
            max_uncopied_pages: checkpoint::MAX_UNCOPIED_PAGES,
        })
    }
}

/// A database file, how many of its pages connections keep in memory, and the bound of its write-ahead log.
#[derive(Clone, Debug)]
pub(crate) struct SqliteFile {
    pub path: PathBuf,
    pub page_caches: PageCaches,
    /// Pages that cannot be copied because a reader holds an old snapshot, after which writes are refused.
    pub max_uncopied_pages: i64,
}

/// The store: one writer, several readers.
pub(crate) struct Store {
    writer: writer::WriterHandle,
    read_pool: read_pool::ReadPool,
    publisher: Arc<dyn EntryPublisher>,
    /// Fills the spare bits of this database's trace ids.
    pub trace_salt: u32,
    /// Released by `close`, not by the last reference to the hub: an aborted request may outlive the close by a moment, and the
    /// next hub on the directory must be able to start.
    data_dir_lock: Mutex<Option<data_dir_lock::DataDirLock>>,
    delivered_marks: delivered_marks::DeliveredMarks,
}

impl Store {
    /// Takes the lock, migrates, and starts the writer. The writer calls `publisher` for every entry after its commit, in order.
    pub async fn open(
        data_dir: &Path,
        database_url: DatabaseUrl,
        accept_damage: bool,
        clock: Clock,
        publisher: Arc<dyn EntryPublisher>,
    ) -> std::result::Result<Self, StartError> {
        let lock = data_dir_lock::DataDirLock::acquire(data_dir)?;
        let start_error = |problem: &str| {
            let problem = problem.to_owned();
            move |e: DbError| StartError::Store {
                what: problem,
                cause: e.to_string(),
            }
        };
        let lost_entries = match &database_url {
            DatabaseUrl::Sqlite(file) => {
                disk_reserve::release_for_start(data_dir);
                check_files(file.path.clone(), accept_damage, clock.now()).await?
            }
            DatabaseUrl::Postgres(_) | DatabaseUrl::Simulated(_) => false,
        };
        let (writer, trace_salt) =
            writer::start_writer(database_url.clone(), lost_entries, clock, publisher.clone())
                .await
                .map_err(start_error("the database could not be opened"))?;
        let read_pool = read_pool::ReadPool::new(database_url)
            .map_err(start_error("the database could not be read"))?;
        Ok(Self {
            writer,
            read_pool,
            publisher,
            trace_salt,
            data_dir_lock: Mutex::new(Some(lock)),
            delivered_marks: delivered_marks::DeliveredMarks::default(),
        })
    }

    /// Sets the settings that write transactions read. Only the first call has an effect.
    pub fn set_hub_settings(&self, settings: HubSettings) {
        let _ = self.writer.settings.set(settings);
    }

    /// Runs `work` in the next group's transaction. Returns after the commit is synced and its entries are published.
    /// An error rolls back what `work` wrote and nothing else. `work` may run more than once (D-88), so it must have no side
    /// effect outside of the transaction.
    pub fn write<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
    {
        let written = self.write_in_scope(erase_write(work));
        async move { take_answer(written.await?) }
    }

    /// Writes for the request that the current task carries out, if there is one.
    fn write_in_scope(&self, work: Box<dyn ErasedWrite>) -> BoxFuture<'_, Result<AnyAnswer>> {
        Box::pin(async move {
            let span = CommitSpan::start();
            let scope = RequestScope::current();
            let work: Box<dyn ErasedWrite> = match scope.clone() {
                Some(scope) => Box::new(ClaimedWrite { scope, work }),
                None => work,
            };
            let written = self.writer.write(work).await;
            span.finish(&written);
            let (answer, _) = written?;
            if let Some(scope) = scope {
                scope.set_committed();
            }
            Ok(answer)
        })
    }

    /// Like `write`, for a write whose result is all that the answer is made of. When the hub stops between the commit and the
    /// answer, a repetition of the request with its `Idempotency-Key` gets the same result.
    pub async fn write_repeatable<T, F>(&self, work: F) -> Result<T>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
    {
        if let Some(kept) = RequestScope::take_kept()? {
            return Ok(kept);
        }
        self.write(async move |txn| {
            let answer = work(txn).await?;
            txn.keep_result(&answer)?;
            Ok(answer)
        })
        .await
    }

    /// Like `write`, and returns the entries that `work` appended, as they were published.
    pub fn write_entries<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<(T, Vec<LogEntry>)>> + Send
    where
        T: Send + 'static,
        F: AsyncFn(&mut WriteTxn<'_>) -> Result<T> + Send + 'static,
    {
        let written = self.write_unscoped(erase_write(work));
        async move {
            let (answer, entries) = written.await?;
            Ok((take_answer(answer)?, entries))
        }
    }

    fn write_unscoped(&self, work: Box<dyn ErasedWrite>) -> BoxFuture<'_, WriteReply> {
        Box::pin(async move {
            let span = CommitSpan::start();
            let written = self.writer.write(work).await;
            span.finish(&written);
            written
        })
    }

    /// Appends one entry without a closure or savepoint, because this write happens thousands of times a second.
    pub async fn append_entry(&self, entry: NewLogEntry) -> Result<LogEntry> {
        let span = CommitSpan::start();
        let appended = self.writer.append_entry(entry).await;
        span.finish(&appended);
        appended
    }

    /// Runs `work` on a read-only connection. Its future is on the heap: most requests find what they need in a cache, and
    /// would carry the room for each read that they do not make.
    pub fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send
    where
        T: Send + 'static,
        F: AsyncFnOnce(&DbConnection<'_>) -> Result<T> + Send + 'static,
    {
        let answer: BoxFuture<'_, _> = Box::pin(self.read_pool.read(erase_read(work)));
        async move { take_answer(answer.await?) }
    }

    /// The last sequence in the participant index; readers scan the log for the entries after it.
    pub fn indexed_seq(&self) -> LogSeq {
        LogSeq(
            self.writer
                .indexed_seq
                .load(std::sync::atomic::Ordering::Acquire),
        )
    }

    /// Whether other hubs write to the same database.
    pub fn has_peers(&self) -> bool {
        self.publisher.cluster_peers().is_some()
    }

    /// Whether caches of the database are valid: no other hub writes, or the log was read recently.
    pub fn is_caught_up(&self) -> bool {
        self.publisher
            .cluster_peers()
            .is_none_or(ClusterPeers::is_caught_up)
    }

    /// The sequence of the newest entry.
    pub async fn newest_seq(&self) -> Result<LogSeq> {
        self.read(async |tx| Ok(log::read_head(tx).await?.seq))
            .await
    }

    /// Whether the data directory is still the one that this store has locked. A closed store has nothing to lose.
    pub fn check_data_dir(&self) -> std::result::Result<(), String> {
        self.data_dir_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map_or(Ok(()), data_dir_lock::DataDirLock::check_in_place)
    }

    /// Commits the queued writes, stops the writer and releases the lock on the data directory.
    pub async fn close(&self) {
        self.writer.close().await;
        drop(
            self.data_dir_lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

/// Checks the files of a database, which may read all of them, off the threads of requests. True when damage was accepted.
async fn check_files(
    file: PathBuf,
    accept_damage: bool,
    now: UnixMicros,
) -> std::result::Result<bool, StartError> {
    let checking = tokio::task::spawn_blocking(move || {
        file_damage::check_database_files(&file, accept_damage, now)
    });
    checking.await.unwrap_or_else(|error| {
        Err(StartError::Store {
            what: "the database could not be checked".into(),
            cause: error.to_string(),
        })
    })
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        match error {
            DbError::UniqueViolation => {
                Error::internal("a row that must be unique was there already")
            }
            DbError::Unavailable(cause) | DbError::DiskFull(cause) => Error::unavailable(cause),
            DbError::Other(cause) => Error::internal(cause),
        }
    }
}

/// Makes a consistent copy of a SQLite database while its hub runs; `to` is the new data directory.
pub(crate) fn backup_database(data_dir: &Path, to: &Path) -> std::result::Result<PathBuf, DbError> {
    let file = data_dir.join(DATABASE_FILE);
    match file_damage::find_lost_database(&file).map(|damage| damage.map(StartError::from)) {
        Ok(None) => sqlite::backup_to(&file, to),
        Ok(Some(error)) | Err(error) => Err(DbError::Other(error.to_string())),
    }
}

/// Bytes that a copy of the SQLite database in this data directory may take.
pub(crate) fn database_bytes(data_dir: &Path) -> u64 {
    sqlite::database_bytes(&data_dir.join(DATABASE_FILE))
}
