//! Looks for damage in the files of a database before a hub writes to them. What SQLite would drop or read wrong in silence stops
//! the start, until an operator accepts it.

use super::sql_value::DbError;
use super::sqlite;
use super::wal_check::{self, WalDamage};
use crate::limits;
use crate::start_error::StartError;
use chorus_wire::time::UnixMicros;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Damage that was found.
#[derive(Debug)]
pub(super) struct FileDamage {
    pub file: PathBuf,
    pub what: String,
    /// What is lost if the hub goes on.
    pub loss: String,
}

impl From<FileDamage> for StartError {
    fn from(damage: FileDamage) -> Self {
        StartError::Damaged {
            file: damage.file.display().to_string(),
            what: damage.what,
            loss: damage.loss,
        }
    }
}

/// Checks the files of a stopped database. True when there was damage and the operator accepts it: it is logged, and a copy of the
/// write-ahead log is kept.
pub(super) fn check_database_files(
    database: &Path,
    accept_damage: bool,
    now: UnixMicros,
) -> Result<bool, StartError> {
    let wal = wal_path(database);
    let mut is_damaged = false;
    if let Some(damage) = find_file_damage(database)? {
        if !accept_damage {
            return Err(damage.into());
        }
        tracing::error!(file = %damage.file.display(), damage.what, damage.loss, "damage was accepted");
        let kept = with_suffix(&wal, &format!(".damaged-{}", now.0));
        std::fs::copy(&wal, &kept).map_err(|e| unreadable(&kept, &e))?;
        is_damaged = true;
    }
    if let Some(damage) = find_page_damage(database)? {
        if !accept_damage {
            return Err(damage.into());
        }
        tracing::error!(file = %damage.file.display(), damage.what, damage.loss, "damage was accepted");
        is_damaged = true;
    }
    Ok(is_damaged)
}

/// Damage that shows without opening the database, which could already destroy what is left.
pub(super) fn find_file_damage(database: &Path) -> Result<Option<FileDamage>, StartError> {
    if std::fs::metadata(database).map_or(0, |file| file.len()) == 0 {
        return find_lost_database(database);
    }
    let wal = wal_path(database);
    let damage = wal_check::find_wal_damage(&wal).map_err(|e| unreadable(&wal, &e))?;
    Ok(damage.map(
        |WalDamage {
             offset,
             lost_transactions,
         }| FileDamage {
            file: wal,
            what: format!("its checksums are wrong from byte {offset} on, before its end"),
            loss: format!(
                "the last {lost_transactions} transactions are lost; each may be many messages"
            ),
        },
    ))
}

/// Whether there is a write-ahead log without its database. SQLite deletes such a log at once, also when it only reads.
pub(super) fn find_lost_database(database: &Path) -> Result<Option<FileDamage>, StartError> {
    if std::fs::metadata(database).map_or(0, |file| file.len()) > 0 {
        return Ok(None);
    }
    let wal = wal_path(database);
    let is_lost = wal_check::has_frames(&wal).map_err(|e| unreadable(&wal, &e))?;
    Ok(is_lost.then(|| FileDamage {
        file: database.to_owned(),
        what: format!("it is empty or missing, and {} is not", wal.display()),
        loss: "everything in it is lost, and also what is only in the log beside it".into(),
    }))
}

/// Checks the structure of the tables for as long as [`limits::DATABASE_CHECK_TIME`]. The log and its index, which are the largest,
/// come last: of a large database, everything else has been checked.
fn find_page_damage(database: &Path) -> Result<Option<FileDamage>, StartError> {
    if std::fs::metadata(database).map_or(0, |file| file.len()) == 0 {
        return Ok(None);
    }
    let damage = |what: String| FileDamage {
        file: database.to_owned(),
        what,
        loss: "what the damaged pages contain is lost, and answers may be wrong".into(),
    };
    let start_error = |e: DbError| StartError::Store {
        what: format!("{} could not be checked", database.display()),
        cause: e.to_string(),
    };
    let connection =
        sqlite::open_reader(database, limits::READER_CACHE_BYTES).map_err(start_error)?;
    let interrupt = connection.get_interrupt_handle();
    let (done, is_done) = channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if is_done.recv_timeout(limits::DATABASE_CHECK_TIME) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let checked = sqlite::check_tables(&connection);
    drop(done);
    let _ = watchdog.join();
    match checked {
        Ok(sqlite::TableCheck::Sound) => Ok(None),
        Ok(sqlite::TableCheck::OutOfTime(unchecked)) => {
            tracing::warn!(
                unchecked = unchecked.join(", "),
                "the database is too large to be checked whole at start"
            );
            Ok(None)
        }
        Ok(sqlite::TableCheck::Damaged(what)) => Ok(Some(damage(what))),
        Err(error) => Err(start_error(error)),
    }
}

fn wal_path(database: &Path) -> PathBuf {
    with_suffix(database, "-wal")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn unreadable(file: &Path, error: &std::io::Error) -> StartError {
    StartError::Store {
        what: format!("{} could not be checked", file.display()),
        cause: error.to_string(),
    }
}
