//! Copies the SQLite database of a stopped hub into an empty PostgreSQL database, in one transaction.

use super::sql_value::{DbError, SqlRow};
use super::{DATABASE_FILE, DbConnection, data_dir_lock, migrations, postgres, sqlite};
use crate::clock::Clock;
use crate::limits;
use crate::start_error::StartError;
use chorus_wire::secret::Secret;
use std::path::Path;

/// Rows that are sent without waiting for each other.
const ROWS_PER_BATCH: usize = 500;

/// Copies the hub of this directory. Returns each table and its number of rows. A failure leaves no rows behind.
pub(crate) async fn copy_to_postgres(
    data_dir: &Path,
    to: &Secret,
) -> Result<Vec<(String, u64)>, StartError> {
    let start_error = |e: DbError| StartError::Store {
        what: "nothing was copied".into(),
        cause: e.to_string(),
    };
    let file = data_dir.join(DATABASE_FILE);
    if !file.exists() {
        return Err(start_error(DbError::Unavailable(format!(
            "{} is not there",
            file.display()
        ))));
    }
    // A running hub would keep writing to the old database.
    let _lock = data_dir_lock::DataDirLock::acquire(data_dir)?;
    super::stopped_database::refuse_damage(&file)?;
    let from = sqlite::open_writer(&file, limits::WRITER_CACHE_BYTES).map_err(start_error)?;
    let now = Clock::system().now().0;
    migrations::run_migrations(&DbConnection::Sqlite(&from), now)
        .await
        .map_err(start_error)?;
    let client = postgres::PostgresClient::connect(to)
        .await
        .map_err(start_error)?;
    client.acquire_hub_lock(true).await.map_err(start_error)?;
    migrations::run_migrations(&DbConnection::Postgres(&client), now)
        .await
        .map_err(start_error)?;
    copy_all(&from, &client).await.map_err(start_error)
}

async fn copy_all(
    from: &rusqlite::Connection,
    to: &postgres::PostgresClient,
) -> Result<Vec<(String, u64)>, DbError> {
    const EMPTY: &str = "select (select count(*) from principals) + (select count(*) from log)";
    if to
        .query(EMPTY, &[])
        .await?
        .first()
        .map(|row| row.int(0))
        .transpose()?
        != Some(0)
    {
        return Err(DbError::Unavailable(
            "the database has agents or messages already".into(),
        ));
    }
    const TABLES: &str = "select name from sqlite_master
                          where type = 'table' and name not like 'sqlite_%' and name <> 'migrations' order by name";
    let mut copied = Vec::new();
    to.execute_batch("begin").await?;
    for mut row in sqlite::query(from, TABLES, &[])? {
        let table = row.text(0)?;
        let rows = copy_table(from, to, &table).await?;
        copied.push((table, rows));
    }
    to.execute_batch("commit").await?;
    Ok(copied)
}

/// Replaces the rows that the migrations put into the new table by those of the old one.
async fn copy_table(
    from: &rusqlite::Connection,
    to: &postgres::PostgresClient,
    table: &str,
) -> Result<u64, DbError> {
    let mut select = from
        .prepare(&format!("select * from {table}"))
        .map_err(sqlite::classify_error)?;
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let placeholders: Vec<String> = (1..=columns.len())
        .map(|number| format!("${number}"))
        .collect();
    let insert = format!(
        "insert into {table} ({}) values ({})",
        columns.join(", "),
        placeholders.join(", ")
    );
    to.execute_batch(&format!("delete from {table}")).await?;
    let mut rows = select.raw_query();
    let mut count = 0;
    let mut batch = Vec::with_capacity(ROWS_PER_BATCH);
    loop {
        let row = rows.next().map_err(sqlite::classify_error)?;
        let is_end = row.is_none();
        if let Some(row) = row {
            batch.push(SqlRow(sqlite::read_columns(row, columns.len())?));
        }
        if batch.len() == ROWS_PER_BATCH || is_end {
            to.insert_rows(&insert, &batch).await?;
            count += batch.len() as u64;
            batch.clear();
        }
        if is_end {
            return Ok(count);
        }
    }
}
