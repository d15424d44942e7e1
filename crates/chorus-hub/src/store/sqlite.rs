//! SQLite: the embedded default. One writing connection, several that only read, write-ahead log, synced at every commit.

use super::value::{DbError, Param, Row, Value};
use rusqlite::backup::StepResult;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Statements kept prepared on each connection: more than the store has.
const STATEMENTS: usize = 128;

/// Creates the file so that nobody else on the machine can read it; the engine gives its other files the same mode.
fn private(path: &Path) -> Result<(), DbError> {
    let made = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    made.map(drop)
        .map_err(|e| DbError::Unavailable(format!("{}: {e}", path.display())))
}

pub(super) fn open_writer(path: &Path) -> Result<Connection, DbError> {
    private(path)?;
    let connection = Connection::open(path).map_err(refused)?;
    // A 2xx means that the commit has been synced: FULL syncs the log at every commit.
    let settings =
        "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma temp_store = memory;
         pragma cache_size = -65536; pragma wal_autocheckpoint = 0; pragma journal_size_limit = 134217728;";
    connection.execute_batch(settings).map_err(refused)?;
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(refused)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(refused)?;
    connection
        .execute_batch("pragma cache_size = -8192; pragma query_only = on;")
        .map_err(refused)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Copies what it can of the write-ahead log into the database file without waiting for anybody: the pages that the log has,
/// and how many of them are copied.
pub(super) fn checkpoint(connection: &Connection) -> Result<(i64, i64), DbError> {
    let pages = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
    connection
        .query_row("pragma wal_checkpoint(passive)", [], pages)
        .map_err(refused)
}

pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    params: &[Param<'_>],
) -> Result<u64, DbError> {
    let mut statement = connection.prepare_cached(sql).map_err(refused)?;
    bind(&mut statement, params)?;
    statement.raw_execute().map(|n| n as u64).map_err(refused)
}

pub(super) fn query(
    connection: &Connection,
    sql: &str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, DbError> {
    query_within(connection, sql, params, usize::MAX).map(|(rows, _)| rows)
}

pub(super) fn query_within(
    connection: &Connection,
    sql: &str,
    params: &[Param<'_>],
    bytes: usize,
) -> Result<(Vec<Row>, bool), DbError> {
    let mut statement = connection.prepare_cached(sql).map_err(refused)?;
    bind(&mut statement, params)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let (mut answer, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(refused)? {
        if size >= bytes {
            return Ok((answer, false));
        }
        let row = Row(values(row, columns)?);
        size += row.size();
        answer.push(row);
    }
    Ok((answer, true))
}

/// The first `columns` of a row.
pub(super) fn values(row: &rusqlite::Row<'_>, columns: usize) -> Result<Vec<Value>, DbError> {
    (0..columns)
        .map(|column| row.get_ref(column).map_err(refused).and_then(value))
        .collect()
}

/// `$3` is a *name* to SQLite, numbered by first appearance: the name says which parameter it wants.
fn bind(statement: &mut Statement<'_>, params: &[Param<'_>]) -> Result<(), DbError> {
    for place in 1..=statement.parameter_count() {
        let named = statement
            .parameter_name(place)
            .and_then(|name| name.get(1..)?.parse::<usize>().ok());
        let param = named.and_then(|n| params.get(n.checked_sub(1)?));
        let param =
            param.ok_or_else(|| DbError::Other(format!("parameter {place} has no value")))?;
        statement
            .raw_bind_parameter(place, param)
            .map_err(refused)?;
    }
    Ok(())
}

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Null => ValueRef::Null,
            Param::Int(number) => ValueRef::Integer(*number),
            Param::Text(text) => ValueRef::Text(text.as_bytes()),
            Param::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(from: ValueRef<'_>) -> Result<Value, DbError> {
    Ok(match from {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => Value::Text(
            std::str::from_utf8(text)
                .map_err(|e| DbError::Other(e.to_string()))?
                .to_owned(),
        ),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(DbError::Other("a fraction where none is stored".into())),
    })
}

pub(super) fn refused(error: rusqlite::Error) -> DbError {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => {
            let unique = [
                rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE,
                rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
            ];
            let extended = error.sqlite_error().map(|e| e.extended_code);
            if extended.is_some_and(|code| unique.contains(&code)) {
                DbError::Unique
            } else {
                DbError::Other(error.to_string())
            }
        }
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::CannotOpen,
        ) => DbError::Unavailable(error.to_string()),
        Some(_) | None => DbError::Other(error.to_string()),
    }
}

/// One step, so that the copy is of one moment however much is written meanwhile; readers never block the writer.
pub(super) fn backup(from: &Path, to: &Path) -> Result<PathBuf, DbError> {
    let io = |e: std::io::Error| DbError::Unavailable(format!("{}: {e}", to.display()));
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
        .map_err(io)?;
    let (whole, partial) = (to.join(super::FILE), to.join("chorus.db.partial"));
    if whole.exists() {
        return Err(DbError::Unavailable(format!(
            "{} is there already",
            whole.display()
        )));
    }
    {
        let source =
            Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(refused)?;
        source
            .busy_timeout(Duration::from_secs(5))
            .map_err(refused)?;
        private(&partial)?;
        let mut target = Connection::open(&partial).map_err(refused)?;
        let copy = rusqlite::backup::Backup::new(&source, &mut target).map_err(refused)?;
        // Busy is an answer here and not an error; a copy that was not made must not look like one.
        let step = copy.step(-1).map_err(refused)?;
        if step != StepResult::Done {
            let _ = std::fs::remove_file(&partial);
            return Err(DbError::Unavailable(format!(
                "{} could not be copied: {step:?}",
                from.display()
            )));
        }
    }
    std::fs::File::open(&partial)
        .and_then(|file| file.sync_all())
        .map_err(io)?;
    std::fs::rename(&partial, &whole).map_err(io)?;
    std::fs::File::open(to)
        .and_then(|dir| dir.sync_all())
        .map_err(io)?;
    Ok(whole)
}
