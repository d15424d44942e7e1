//! Copies of a hub's data: a backup, a move to PostgreSQL, and the mark of a restored copy.

use crate::start_error::StartError;
use crate::{Result, seal, store};
use chorus_wire::Error;
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};

/// Copies the database of the hub in `data_dir`, which may be running, into the new directory `to`.
pub fn backup_data_dir(data_dir: &Path, to: &Path) -> Result<PathBuf> {
    let copy = store::backup_database(data_dir, to).map_err(Error::unavailable)?;
    // Without the key a restored hub could not unseal any connection string.
    let key = data_dir.join(seal::SEAL_KEY_FILE);
    if key.exists() {
        let key_copy = to.join(seal::SEAL_KEY_FILE);
        std::fs::copy(&key, &key_copy)
            .and_then(|_| std::fs::File::open(&key_copy)?.sync_all())
            .and_then(|()| std::fs::File::open(to)?.sync_all())
            .map_err(Error::unavailable)?;
    }
    Ok(copy)
}

/// Copies the database of the stopped hub in `data_dir` into an empty PostgreSQL database. Returns the rows of each table.
pub async fn copy_to_postgres(
    data_dir: &Path,
    to: &Secret,
) -> std::result::Result<Vec<(String, u64)>, StartError> {
    store::copy_to_postgres(data_dir, to).await
}

/// Advances the log of a restored copy past every cursor that clients have, before a hub is started on it.
pub async fn mark_restored(
    data_dir: &Path,
    database: Option<&Secret>,
) -> std::result::Result<(), StartError> {
    store::advance_after_restore(data_dir, database).await
}

/// Lets the next hub on the data bring a new sealing key, after the old one was lost.
pub async fn forget_seal_key(
    data_dir: &Path,
    database: Option<&Secret>,
) -> std::result::Result<(), StartError> {
    store::forget_seal_key(data_dir, database).await
}
