//! What is known: one log and the tables beside it, on SQLite or PostgreSQL, written in groups and synced before anyone is told.

pub(crate) mod accords;
pub(crate) mod artifacts;
pub(crate) mod channels;
mod checkpoint;
pub(crate) mod connections;
mod copy;
pub(crate) mod counters;
pub(crate) mod deliveries;
mod dialect;
mod engine;
mod fold;
pub(crate) mod grants;
mod group;
pub(crate) mod idempotency;
pub(crate) mod invites;
mod job;
pub(crate) mod jobs;
pub(crate) mod ledger;
mod line;
mod lock;
pub(crate) mod log;
pub(crate) mod market;
pub(crate) mod messages;
mod migrations;
pub(crate) mod notice;
pub(crate) mod orgs;
pub(crate) mod outbox;
mod parts;
mod postgres;
pub(crate) mod principals;
mod publish;
mod readers;
pub(crate) mod reputation;
mod restored;
pub(crate) mod retention;
pub(crate) mod sessions;
pub(crate) mod skills;
mod sqlite;
#[cfg(test)]
mod tests;
mod tls;
mod tx;
mod txn;
mod value;
mod writer;

pub(crate) use copy::copy;
pub(crate) use log::{Entry, Kind, Mark, NewEntry};
pub(crate) use notice::Notice;
pub(crate) use publish::{Others, Publish};
pub(crate) use restored::restored;
pub(crate) use tx::Tx;
pub(crate) use txn::{Terms, Txn};
pub(crate) use value::{DbError, Param, Row};

use crate::hub::StartError;
use crate::{Clock, Result};
use chorus_wire::{Error, secret::Secret};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The database file in the data directory.
pub(crate) const FILE: &str = "chorus.db";

/// Where the data is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres(Secret),
}

/// The store: one writer, several readers.
pub(crate) struct Store {
    writer: writer::Handle,
    readers: readers::Readers,
    /// What this database puts in the spare bits of its trace ids.
    pub salt: u32,
    /// Held until the store is closed. Not until the last hold on the hub is gone: a request that is being cut may outlive the
    /// closing by a moment, and the next hub on the directory must not trip over it.
    lock: Mutex<Option<lock::Lock>>,
}

impl Store {
    /// Takes the lock, migrates, and starts the writer. `publish` hears of every entry after its commit, in order.
    pub async fn open(
        data_dir: &Path,
        database: Option<&Secret>,
        clock: Clock,
        publish: Arc<dyn Publish>,
    ) -> std::result::Result<Self, StartError> {
        let lock = lock::Lock::take(data_dir)?;
        let place = match database {
            None => Place::Sqlite(data_dir.join(FILE)),
            Some(url) => Place::Postgres(url.clone()),
        };
        let failed = |what: &str| {
            let what = what.to_owned();
            move |e: DbError| StartError::Store {
                what,
                cause: e.to_string(),
            }
        };
        let (writer, salt) = writer::start(place.clone(), clock, publish)
            .await
            .map_err(failed("the database could not be opened"))?;
        let readers =
            readers::Readers::new(place).map_err(failed("the database could not be read"))?;
        Ok(Self {
            writer,
            readers,
            salt,
            lock: Mutex::new(Some(lock)),
        })
    }

    /// What the hub goes by from here on; said once.
    pub fn go_by(&self, terms: Terms) {
        let _ = self.writer.terms.set(terms);
    }

    /// Runs `work` in the next group's transaction; the answer comes after the commit is synced and its entries are published.
    /// An error undoes what `work` wrote and nothing else. It may run more than once (D-88): what it does outside of the
    /// transaction would be done as often.
    pub async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFn(&mut Txn<'_>) -> Result<T> + Send + 'static,
    {
        self.writer.write(work).await.map(|(answer, _)| answer)
    }

    /// The same, with the entries that `work` appended, as they were published.
    pub async fn write_entries<T, F>(&self, work: F) -> Result<(T, Vec<Entry>)>
    where
        T: Send + 'static,
        F: AsyncFn(&mut Txn<'_>) -> Result<T> + Send + 'static,
    {
        self.writer.write(work).await
    }

    /// Appends one entry: the short way for the one write that happens thousands of times a second.
    pub async fn append(&self, entry: NewEntry) -> Result<Entry> {
        self.writer.append(entry).await
    }

    /// Runs `work` on a read-only connection.
    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.readers.read(work).await
    }

    /// Up to where the parts are kept; readers look through what comes after it.
    pub fn indexed(&self) -> i64 {
        self.writer
            .indexed
            .load(std::sync::atomic::Ordering::Acquire)
    }

    /// The place of the newest entry.
    pub async fn newest(&self) -> Result<i64> {
        self.read(async |tx| Ok(log::head(tx).await?.seq)).await
    }

    /// Commits what is queued, stops the writer and gives the data directory free.
    pub async fn close(&self) {
        self.writer.close().await;
        drop(
            self.lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Unique => Error::internal("a row that must be unique was there already"),
            DbError::Unavailable(cause) => Error::unavailable(cause),
            DbError::Other(cause) => Error::internal(cause),
        }
    }
}

/// A consistent copy of a SQLite hub's database, made while the hub runs; `to` is the new data directory.
pub(crate) fn backup(data_dir: &Path, to: &Path) -> std::result::Result<PathBuf, DbError> {
    sqlite::backup(&data_dir.join(FILE), to)
}
