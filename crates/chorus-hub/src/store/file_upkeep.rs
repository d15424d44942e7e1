//! The upkeep of the database file: copies of the write-ahead log, its bound, and what a full disk needs.

use super::checkpoint::CheckpointThread;
use super::disk_reserve::DiskReserve;
use super::{DbError, SqliteFile, sqlite};
use rusqlite::Connection;
use std::time::Duration;

pub(super) struct FileUpkeep {
    checkpoint: Option<CheckpointThread>,
    reserve: Option<DiskReserve>,
}

impl FileUpkeep {
    pub fn start(file: &SqliteFile, now: Duration) -> Self {
        Self {
            checkpoint: CheckpointThread::spawn(file),
            reserve: file
                .path
                .parent()
                .map(|data_dir| DiskReserve::take(data_dir, now)),
        }
    }

    /// Refuses writes while the write-ahead log is over its bound: a program that reads the database file keeps it from being
    /// copied, and it would fill the disk.
    ///
    /// Also refuses them while the disk has too little space for what the log has to be copied to.
    pub fn check_space(&self) -> Result<(), DbError> {
        if self
            .reserve
            .as_ref()
            .is_some_and(DiskReserve::is_space_short)
        {
            return Err(DbError::DiskFull(
                "the disk has too little space left".into(),
            ));
        }
        match &self.checkpoint {
            Some(checkpoint) if checkpoint.is_wal_over_bound() => Err(DbError::Unavailable(
                "the write-ahead log is full: another program has been reading the database file for too long".into(),
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub fn on_group_committed(&mut self, connection: &Connection, now: Duration) {
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.on_group_committed(connection);
        }
        if let Some(reserve) = &mut self.reserve {
            reserve.retake(now);
        }
    }

    /// After a full disk: gives up the reserve and copies the log back, which frees the space that the log uses.
    pub fn on_group_failed(&mut self, connection: &Connection, cause: &DbError, now: Duration) {
        match cause {
            DbError::DiskFull(_) => {}
            DbError::UniqueViolation | DbError::Unavailable(_) | DbError::Other(_) => return,
        }
        if let Some(reserve) = &mut self.reserve {
            reserve.release(now);
        }
        match sqlite::truncate_wal(connection) {
            Ok(()) => tracing::info!("the disk was full; the write-ahead log was copied back"),
            Err(error) => tracing::debug!(%error, "the write-ahead log could not be copied back"),
        }
    }
}
