//! Dated copies of a hub's data in one directory: each is made beside the others, checked, and only then counted (D-109).

use super::backup::backup_data_dir;
use crate::{Result, store};
use chorus_wire::Error;
use chorus_wire::time::UnixMicros;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The names of complete copies begin with this and sort by their time.
const COPY_PREFIX: &str = "chorus-";
/// A copy that is being made; what an interrupted one left is removed by the next.
const PARTIAL_DIR: &str = "partial";
const LOCK_FILE: &str = "lock";

/// A copy, and the older copies that were removed for it.
#[derive(Clone, Debug)]
pub struct DatedCopy {
    pub path: PathBuf,
    pub removed: Vec<PathBuf>,
}

/// Copies the hub in `data_dir`, which may be running, into a new directory under `copies`, checks the copy, and removes all but
/// the newest `keep` copies. A copy that cannot be made removes none.
pub fn make_dated_copy(
    data_dir: &Path,
    copies: &Path,
    keep: usize,
    now: UnixMicros,
) -> Result<DatedCopy> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(copies)
        .map_err(|e| describe_io_error(copies, &e))?;
    let _lock = lock_copies(copies)?;
    let partial = copies.join(PARTIAL_DIR);
    remove_partial(&partial)?;
    check_space(data_dir, copies)?;
    let made = make_checked_copy(data_dir, &partial, &copies.join(copy_name(now)));
    let path = match made {
        Ok(path) => path,
        Err(error) => {
            // Its space may be what the hub needs next.
            remove_partial(&partial)?;
            return Err(error);
        }
    };
    Ok(DatedCopy {
        removed: remove_old_copies(copies, keep)?,
        path,
    })
}

fn make_checked_copy(data_dir: &Path, partial: &Path, path: &Path) -> Result<PathBuf> {
    backup_data_dir(data_dir, partial)?;
    let io_error = |e: std::io::Error| describe_io_error(path, &e);
    // A rename onto an empty directory would succeed.
    if path.exists() {
        let cause = std::io::ErrorKind::AlreadyExists.into();
        return Err(io_error(cause));
    }
    fs::rename(partial, path).map_err(io_error)?;
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(io_error)?;
    Ok(path.to_owned())
}

/// `chorus-20260322T043000123Z`: UTC, to the millisecond.
fn copy_name(now: UnixMicros) -> String {
    let digits: String = now
        .to_string()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .take("20260322T043000123".len())
        .collect();
    format!("{COPY_PREFIX}{}Z", digits.trim_end_matches('Z'))
}

/// Two that copy into one directory would take each other's copy for an interrupted one.
fn lock_copies(copies: &Path) -> Result<File> {
    let path = copies.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| describe_io_error(&path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::unavailable(format!(
            "another command is copying into {}",
            copies.display()
        ))),
        Err(TryLockError::Error(error)) => Err(describe_io_error(&path, &error)),
    }
}

fn remove_partial(partial: &Path) -> Result<()> {
    match fs::remove_dir_all(partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(describe_io_error(partial, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Refuses a copy for which the disk has no room, before it takes the room that is left.
fn check_space(data_dir: &Path, copies: &Path) -> Result<()> {
    let needed = store::database_bytes(data_dir);
    match store::free_bytes(copies) {
        Some(free) if free < needed => Err(Error::unavailable(format!(
            "the disk of {} has {free} bytes left, and the copy needs {needed}",
            copies.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Removes all but the newest `keep` copies. Nothing else in the directory is touched.
fn remove_old_copies(copies: &Path, keep: usize) -> Result<Vec<PathBuf>> {
    let io_error = |e: std::io::Error| describe_io_error(copies, &e);
    let mut found = Vec::new();
    for entry in fs::read_dir(copies).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let is_copy = entry.file_name().to_str().is_some_and(is_copy_name);
        if is_copy && entry.path().join(store::DATABASE_FILE).exists() {
            found.push(entry.path());
        }
    }
    found.sort();
    let old_count = found.len().saturating_sub(keep.max(1));
    found.truncate(old_count);
    for old in &found {
        fs::remove_dir_all(old).map_err(|e| describe_io_error(old, &e))?;
    }
    Ok(found)
}

fn is_copy_name(name: &str) -> bool {
    name.strip_prefix(COPY_PREFIX).is_some_and(|time| {
        time.len() == "20260322T043000123Z".len()
            && time.ends_with('Z')
            && time
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'T' || b == b'Z')
    })
}

fn describe_io_error(path: &Path, error: &std::io::Error) -> Error {
    Error::unavailable(format!("{}: {error}", path.display()))
}
