//! The SQLite engine, the default: one writing connection, several read-only ones, a write-ahead log synced at every commit.

use super::sql_value::{DbError, SqlParam, SqlRow, SqlValue};
use rusqlite::backup::StepResult;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, Statement};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prepared statements cached per connection; the store has fewer.
const STATEMENT_CACHE_SIZE: usize = 128;

/// Creates the file readable by the hub's user only; SQLite gives its other files the same mode.
fn create_private_file(path: &Path) -> Result<(), DbError> {
    let created = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    created
        .map(drop)
        .map_err(|e| DbError::Unavailable(format!("{}: {e}", path.display())))
}

pub(super) fn open_writer(path: &Path, cache_bytes: u64) -> Result<Connection, DbError> {
    create_private_file(path)?;
    let connection = Connection::open(path).map_err(classify_error)?;
    configure_writer(&connection, cache_bytes)?;
    Ok(connection)
}

pub(super) fn configure_writer(connection: &Connection, cache_bytes: u64) -> Result<(), DbError> {
    // A 2xx reply promises a synced commit: `synchronous = full` syncs the write-ahead log at every commit.
    let settings = format!(
        "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma temp_store = memory;
         {}; pragma wal_autocheckpoint = 0; pragma journal_size_limit = 134217728;",
        cache_size_pragma(cache_bytes)
    );
    connection
        .execute_batch(&settings)
        .map_err(classify_error)?;
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(classify_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    Ok(())
}

/// A negative size is in KiB.
fn cache_size_pragma(bytes: u64) -> String {
    format!("pragma cache_size = -{}", (bytes / 1024).max(1))
}

pub(super) fn open_reader(path: &Path, cache_bytes: u64) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(classify_error)?;
    configure_reader(&connection, cache_bytes)?;
    Ok(connection)
}

pub(super) fn configure_reader(connection: &Connection, cache_bytes: u64) -> Result<(), DbError> {
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(classify_error)?;
    connection
        .execute_batch(&format!(
            "{}; pragma query_only = on;",
            cache_size_pragma(cache_bytes)
        ))
        .map_err(classify_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    Ok(())
}

/// Copies as much of the write-ahead log into the database file as is possible without waiting for readers or the writer.
/// Returns the pages in the log and how many of them are copied.
pub(super) fn checkpoint_wal(connection: &Connection) -> Result<(i64, i64), DbError> {
    let pages = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
    connection
        .query_row("pragma wal_checkpoint(passive)", [], pages)
        .map_err(classify_error)
}

/// Copies the whole write-ahead log and gives its disk space back. Waits a moment for readers.
pub(super) fn truncate_wal(connection: &Connection) -> Result<(), DbError> {
    connection
        .query_row("pragma wal_checkpoint(truncate)", [], |row| {
            row.get::<_, i64>(0)
        })
        .map(drop)
        .map_err(classify_error)
}

/// What a check of the tables found.
pub(super) enum TableCheck {
    Sound,
    Damaged(String),
    /// The check was interrupted; these tables were not checked to their end.
    OutOfTime(Vec<String>),
}

/// Checks the structure of every table and its indexes, the smallest ones first.
pub(super) fn check_tables(connection: &Connection) -> Result<TableCheck, DbError> {
    const TABLES: &str =
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'
                          order by name in ('log', 'parts'), name";
    let checked = (|| {
        let mut statement = connection.prepare(TABLES)?;
        let names = statement.query_map([], |row| row.get(0))?;
        let tables = names.collect::<Result<Vec<String>, _>>()?;
        for (number, table) in tables.iter().enumerate() {
            let check = format!("pragma quick_check('{table}')");
            let verdict = connection.query_row(&check, [], |row| row.get::<_, String>(0));
            match verdict {
                Ok(verdict) if verdict == "ok" => {}
                Ok(verdict) => {
                    // The first line is a heading, and one fault is enough to know.
                    let fault = verdict.lines().find(|line| !line.starts_with("***"));
                    let fault = fault.unwrap_or(&verdict);
                    return Ok(TableCheck::Damaged(format!("table {table}: {fault}")));
                }
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) =>
                {
                    return Ok(TableCheck::OutOfTime(tables[number..].to_vec()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(TableCheck::Sound)
    })();
    match checked {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Ok(TableCheck::Damaged(error.to_string()))
        }
        checked => checked.map_err(classify_error),
    }
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    params: &[SqlParam<'_>],
) -> Result<u64, DbError> {
    PreparedStatement::prepare(connection, sql)?.execute(params)
}

/// A statement that is executed several times. The cache of the connection and the names of the parameters are looked at once.
pub(super) struct PreparedStatement<'c> {
    statement: CachedStatement<'c>,
    /// For each parameter of the statement, in SQLite's order, its place in the parameters of the caller.
    param_places: Vec<usize>,
}

impl<'c> PreparedStatement<'c> {
    pub fn prepare(connection: &'c Connection, sql: &str) -> Result<Self, DbError> {
        let statement = connection.prepare_cached(sql).map_err(classify_error)?;
        let param_places = param_places(&statement)?;
        Ok(Self {
            statement,
            param_places,
        })
    }

    /// Returns how many rows changed.
    pub fn execute(&mut self, params: &[SqlParam<'_>]) -> Result<u64, DbError> {
        bind_params(&mut self.statement, &self.param_places, params)?;
        self.statement
            .raw_execute()
            .map(|n| n as u64)
            .map_err(classify_error)
    }
}

pub(super) fn query(
    connection: &Connection,
    sql: &str,
    params: &[SqlParam<'_>],
) -> Result<Vec<SqlRow>, DbError> {
    query_within_bytes(connection, sql, params, usize::MAX).map(|(rows, _)| rows)
}

pub(super) fn query_within_bytes(
    connection: &Connection,
    sql: &str,
    params: &[SqlParam<'_>],
    max_bytes: usize,
) -> Result<(Vec<SqlRow>, bool), DbError> {
    let mut statement = connection.prepare_cached(sql).map_err(classify_error)?;
    let param_places = param_places(&statement)?;
    bind_params(&mut statement, &param_places, params)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut answer = Vec::new();
    let mut size = 0;
    while let Some(row) = rows.next().map_err(classify_error)? {
        if size >= max_bytes {
            return Ok((answer, false));
        }
        let row = SqlRow(read_columns(row, columns)?);
        size += row.byte_len();
        answer.push(row);
    }
    Ok((answer, true))
}

/// The first `columns` columns of a row.
pub(super) fn read_columns(
    row: &rusqlite::Row<'_>,
    columns: usize,
) -> Result<Vec<SqlValue>, DbError> {
    (0..columns)
        .map(|column| {
            row.get_ref(column)
                .map_err(classify_error)
                .and_then(convert_value)
        })
        .collect()
}

/// The places of the statement's parameters among those of the caller. To SQLite `$3` is a *name* that gets an index by its first
/// appearance; the place is the number in the name.
fn param_places(statement: &Statement<'_>) -> Result<Vec<usize>, DbError> {
    (1..=statement.parameter_count())
        .map(|index| {
            statement
                .parameter_name(index)
                .and_then(|name| name.get(1..)?.parse::<usize>().ok()?.checked_sub(1))
                .ok_or_else(|| DbError::Other(format!("parameter {index} has no number")))
        })
        .collect()
}

fn bind_params(
    statement: &mut Statement<'_>,
    param_places: &[usize],
    params: &[SqlParam<'_>],
) -> Result<(), DbError> {
    for (index, place) in (1..).zip(param_places) {
        let param = params
            .get(*place)
            .ok_or_else(|| DbError::Other(format!("parameter {index} has no value")))?;
        statement
            .raw_bind_parameter(index, param)
            .map_err(classify_error)?;
    }
    Ok(())
}

impl rusqlite::ToSql for SqlParam<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            SqlParam::Null => ValueRef::Null,
            SqlParam::Int(number) => ValueRef::Integer(*number),
            SqlParam::Text(text) => ValueRef::Text(text.as_bytes()),
            SqlParam::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn convert_value(from: ValueRef<'_>) -> Result<SqlValue, DbError> {
    Ok(match from {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Int(number),
        ValueRef::Text(text) => SqlValue::Text(
            std::str::from_utf8(text)
                .map_err(|e| DbError::Other(e.to_string()))?
                .to_owned(),
        ),
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(DbError::Other("a fraction where none is stored".into())),
    })
}

pub(super) fn classify_error(error: rusqlite::Error) -> DbError {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => {
            let unique = [
                rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE,
                rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ];
            let extended = error.sqlite_error().map(|e| e.extended_code);
            if extended.is_some_and(|code| unique.contains(&code)) {
                DbError::UniqueViolation
            } else {
                DbError::Other(error.to_string())
            }
        }
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::CannotOpen,
        ) => DbError::Unavailable(error.to_string()),
        Some(ErrorCode::DiskFull) => DbError::DiskFull(error.to_string()),
        Some(_) | None => DbError::Other(error.to_string()),
    }
}

/// Marks a copy, so that the first hub on it skips the sequences that clients may have seen since.
fn mark_as_copy(target: &Connection) -> Result<(), DbError> {
    target
        .execute(
            "insert into settings (name, value) values ($1, 1) on conflict (name) do update set value = 1",
            [super::counters::BACKUP_COPY],
        )
        .map(drop)
        .map_err(classify_error)
}

/// Copies the database in one step, so that the copy shows one moment, and reads the copy back.
fn copy_and_check(from: &Path, partial_file: &Path) -> Result<(), DbError> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(classify_error)?;
    source
        .busy_timeout(Duration::from_secs(5))
        .map_err(classify_error)?;
    create_private_file(partial_file)?;
    let mut target = Connection::open(partial_file).map_err(classify_error)?;
    let copy = rusqlite::backup::Backup::new(&source, &mut target).map_err(classify_error)?;
    // A busy database is a result here, not an error; an incomplete backup must not look like a complete one.
    let step = copy.step(-1).map_err(classify_error)?;
    if step != StepResult::Done {
        return Err(DbError::Unavailable(format!(
            "{} could not be copied: {step:?}",
            from.display()
        )));
    }
    drop(copy);
    mark_as_copy(&target)?;
    drop(target);
    check_integrity(partial_file)
}

/// Reads the whole file. A damaged original gives a damaged copy, and the operator must learn that before it is needed.
fn check_integrity(file: &Path) -> Result<(), DbError> {
    let connection = Connection::open(file).map_err(classify_error)?;
    let finding: String = connection
        .query_row("pragma quick_check(1)", [], |row| row.get(0))
        .map_err(classify_error)?;
    if finding == "ok" {
        Ok(())
    } else {
        Err(DbError::Other(format!("the copy is damaged: {finding}")))
    }
}

/// Bytes of the database file and of its write-ahead log.
pub(super) fn database_bytes(file: &Path) -> u64 {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    size(file) + size(Path::new(&log))
}

/// Copies the database into a new directory. A reader never blocks the writer.
pub(super) fn backup_to(from: &Path, to: &Path) -> Result<PathBuf, DbError> {
    let io_error = |e: std::io::Error| DbError::Unavailable(format!("{}: {e}", to.display()));
    if !from.exists() {
        return Err(DbError::Unavailable(format!(
            "{} is not there",
            from.display()
        )));
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(to)
        .map_err(io_error)?;
    let target_file = to.join(super::DATABASE_FILE);
    let partial_file = to.join("chorus.db.partial");
    if target_file.exists() {
        return Err(DbError::Unavailable(format!(
            "{} is there already",
            target_file.display()
        )));
    }
    if let Err(error) = copy_and_check(from, &partial_file) {
        // An incomplete copy must not take the space that is left.
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut leftover = partial_file.clone().into_os_string();
            leftover.push(suffix);
            let _ = std::fs::remove_file(leftover);
        }
        return Err(error);
    }
    std::fs::File::open(&partial_file)
        .and_then(|file| file.sync_all())
        .map_err(io_error)?;
    std::fs::rename(&partial_file, &target_file).map_err(io_error)?;
    std::fs::File::open(to)
        .and_then(|dir| dir.sync_all())
        .map_err(io_error)?;
    Ok(target_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// the pages that copying and marking do not touch are read back too.
    #[test]
    fn a_copy_of_a_damaged_page_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let original = dir.path().join("original.db");
        let connection = Connection::open(&original).unwrap();
        connection
            .execute_batch(
                "create table settings (name text primary key, value integer);
                 create table entries (seq integer primary key, body text);
                 with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 500)
                 insert into entries select n, hex(zeroblob(1000)) from numbers;",
            )
            .unwrap();
        drop(connection);
        copy_and_check(&original, &dir.path().join("sound.db")).unwrap();
        let mut bytes = std::fs::read(&original).unwrap();
        let middle = bytes.len() / 2 / 4_096 * 4_096;
        bytes[middle..middle + 4_096].fill(0xa5);
        std::fs::write(&original, bytes).unwrap();
        let refusal = copy_and_check(&original, &dir.path().join("damaged.db")).unwrap_err();
        assert!(refusal.to_string().contains("damaged"), "{refusal}");
    }
}
