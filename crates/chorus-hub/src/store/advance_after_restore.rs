//! Advances the log's sequence after a backup was restored. Clients may hold cursors from after the backup; an entry with a
//! sequence that was used before would be hidden from them.

use super::sql_value::DbError;
use super::{DATABASE_FILE, DbConnection, data_dir_lock, migrations, postgres, sqlite};
use crate::clock::Clock;
use crate::start_error::StartError;
use chorus_wire::secret::Secret;
use std::path::Path;

/// Skips a billion sequences: more than a hub writes between two backups, and a thousandth of all sequences.
const SKIP_SEQUENCES: &str = "insert into log (seq, subject, kind, actor, at, body)
                    select max(seq) + 1000000000, 0, 'activity', 0, max(at), '{\"type\":\"restored\",\"data\":{}}'
                    from log having count(*) > 0";

/// Advances the sequence. No hub may be running on the data, so this takes the same locks as a hub.
pub(crate) async fn advance_after_restore(
    data_dir: &Path,
    database: Option<&Secret>,
) -> Result<(), StartError> {
    let start_error = |e: DbError| StartError::Store {
        what: "nothing was changed".into(),
        cause: e.to_string(),
    };
    let now = Clock::system().now().0;
    if let Some(url) = database {
        let client = postgres::PostgresClient::connect(url)
            .await
            .map_err(start_error)?;
        client.acquire_hub_lock(true).await.map_err(start_error)?;
        return skip_sequences(&DbConnection::Postgres(&client), now)
            .await
            .map_err(start_error);
    }
    let file = data_dir.join(DATABASE_FILE);
    if !file.exists() {
        return Err(start_error(DbError::Unavailable(format!(
            "{} is not there",
            file.display()
        ))));
    }
    let _lock = data_dir_lock::DataDirLock::acquire(data_dir)?;
    let connection = sqlite::open_writer(&file).map_err(start_error)?;
    skip_sequences(&DbConnection::Sqlite(&connection), now)
        .await
        .map_err(start_error)
}

async fn skip_sequences(tx: &DbConnection<'_>, now: i64) -> Result<(), DbError> {
    migrations::run_migrations(tx, now).await?;
    match tx.execute(SKIP_SEQUENCES, &[]).await? {
        0 => Err(DbError::Unavailable("there is nothing in it".into())),
        _ => Ok(()),
    }
}
