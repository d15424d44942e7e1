//! Changes that an operator makes to the database of a stopped hub. Clients may hold cursors from after a backup; an entry with a
//! sequence that was used before would be hidden from them, so the sequence is advanced after a restore.

use super::sql_value::DbError;
use super::{
    DATABASE_FILE, DbConnection, counters, data_dir_lock, file_damage, migrations, postgres,
    seal_record, sqlite,
};
use crate::clock::Clock;
use crate::limits;
use crate::start_error::StartError;
use chorus_wire::secret::Secret;
use std::path::Path;

/// Skips a billion sequences: more than a hub writes between two backups, and a thousandth of all sequences. It reads the newest
/// entry only, because pages of a damaged log may be unreadable.
const SKIP_SEQUENCES: &str = "insert into log (seq, subject, kind, actor, at, body)
                    select seq + 1000000000, 0, 'activity', 0, at, '{\"type\":\"restored\",\"data\":{}}'
                    from log order by seq desc limit 1";

/// Advances the sequence of a stopped hub's database.
pub(crate) async fn advance_after_restore(
    data_dir: &Path,
    database: Option<&Secret>,
) -> Result<(), StartError> {
    change_stopped_database(data_dir, database, async |tx| skip_sequences(tx).await).await
}

/// Lets the next hub on a stopped hub's database bring a new sealing key.
pub(crate) async fn forget_seal_key(
    data_dir: &Path,
    database: Option<&Secret>,
) -> Result<(), StartError> {
    change_stopped_database(data_dir, database, async |tx| {
        seal_record::forget_seal_key(tx).await
    })
    .await
}

/// Migrates and changes a database. No hub may be running on the data, so this takes the same locks as a hub.
async fn change_stopped_database(
    data_dir: &Path,
    database: Option<&Secret>,
    change: impl AsyncFnOnce(&DbConnection<'_>) -> Result<(), DbError>,
) -> Result<(), StartError> {
    let start_error = |e: DbError| StartError::Store {
        what: "nothing was changed".into(),
        cause: e.to_string(),
    };
    let now = Clock::system().now().0;
    let change = async |tx: &DbConnection<'_>| {
        migrations::run_migrations(tx, now).await?;
        change(tx).await
    };
    if let Some(url) = database {
        let client = postgres::PostgresClient::connect(url)
            .await
            .map_err(start_error)?;
        client.acquire_hub_lock(true).await.map_err(start_error)?;
        return change(&DbConnection::Postgres(&client))
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
    refuse_damage(&file)?;
    let connection = sqlite::open_writer(&file, limits::WRITER_CACHE_BYTES).map_err(start_error)?;
    change(&DbConnection::Sqlite(&connection))
        .await
        .map_err(start_error)
}

/// Refuses to open a database which that alone would rob of its write-ahead log.
pub(super) fn refuse_damage(file: &Path) -> Result<(), StartError> {
    file_damage::find_file_damage(file)?.map_or(Ok(()), |damage| Err(damage.into()))
}

/// Advances a log that is shorter than what clients have seen: that of a copy which `chorus admin backup` made, at its first start,
/// or one that lost entries. True when it was one.
pub(super) async fn advance_shortened_log(
    tx: &DbConnection<'_>,
    lost_entries: bool,
) -> Result<bool, DbError> {
    let is_copy = counters::read_setting(tx, counters::BACKUP_COPY).await? == Some(1);
    if !is_copy && !lost_entries {
        return Ok(false);
    }
    tx.execute(SKIP_SEQUENCES, &[]).await?;
    // After the sequences: a crash between the two skips them twice, which costs nothing.
    counters::write_setting(tx, counters::BACKUP_COPY, 0).await?;
    Ok(true)
}

async fn skip_sequences(tx: &DbConnection<'_>) -> Result<(), DbError> {
    match tx.execute(SKIP_SEQUENCES, &[]).await? {
        0 => Err(DbError::Unavailable("there is nothing in it".into())),
        _ => counters::write_setting(tx, counters::BACKUP_COPY, 0).await,
    }
}
