//! From a file to PostgreSQL: everything a stopped hub knows, in one transaction, into a database that has nothing in it.

use super::value::{DbError, Row};
use super::{FILE, Tx, lock, migrations, postgres, sqlite};
use crate::clock::Clock;
use crate::hub::StartError;
use chorus_wire::secret::Secret;
use std::path::Path;

/// Rows that travel together.
const AT_ONCE: usize = 500;

/// Copies the hub of this directory; how many rows of which table. Nothing is there when it fails.
pub(crate) async fn copy(data_dir: &Path, to: &Secret) -> Result<Vec<(String, u64)>, StartError> {
    let failed = |e: DbError| StartError::Store {
        what: "nothing was copied".into(),
        cause: e.to_string(),
    };
    let file = data_dir.join(FILE);
    if !file.exists() {
        return Err(failed(DbError::Unavailable(format!(
            "{} is not there",
            file.display()
        ))));
    }
    // A hub that runs would go on writing to what is about to be left behind.
    let _lock = lock::Lock::take(data_dir)?;
    let from = sqlite::open_writer(&file).map_err(failed)?;
    let now = Clock::system().now().0;
    migrations::run(&Tx::Sqlite(&from), now)
        .await
        .map_err(failed)?;
    let client = postgres::Client::connect(to).await.map_err(failed)?;
    client.hold(true).await.map_err(failed)?;
    migrations::run(&Tx::Postgres(&client), now)
        .await
        .map_err(failed)?;
    copy_all(&from, &client).await.map_err(failed)
}

async fn copy_all(
    from: &rusqlite::Connection,
    to: &postgres::Client,
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
    to.batch("begin").await?;
    for mut row in sqlite::query(from, TABLES, &[])? {
        let table = row.text(0)?;
        let rows = copy_table(from, to, &table).await?;
        copied.push((table, rows));
    }
    to.batch("commit").await?;
    Ok(copied)
}

/// What the migrations put into the new table gives way to what the old one has.
async fn copy_table(
    from: &rusqlite::Connection,
    to: &postgres::Client,
    table: &str,
) -> Result<u64, DbError> {
    let mut select = from
        .prepare(&format!("select * from {table}"))
        .map_err(sqlite::refused)?;
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let places: Vec<String> = (1..=columns.len())
        .map(|place| format!("${place}"))
        .collect();
    let insert = format!(
        "insert into {table} ({}) values ({})",
        columns.join(", "),
        places.join(", ")
    );
    to.batch(&format!("delete from {table}")).await?;
    let mut rows = select.raw_query();
    let (mut count, mut group) = (0, Vec::with_capacity(AT_ONCE));
    loop {
        let row = rows.next().map_err(sqlite::refused)?;
        let over = row.is_none();
        if let Some(row) = row {
            group.push(Row(sqlite::values(row, columns.len())?));
        }
        if group.len() == AT_ONCE || over {
            to.insert_all(&insert, &group).await?;
            count += group.len() as u64;
            group.clear();
        }
        if over {
            return Ok(count);
        }
    }
}
