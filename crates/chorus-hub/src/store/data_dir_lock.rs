//! The lock on the data directory: a second hub on the same directory does not start.

use crate::start_error::StartError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// A file lock of the operating system: it ends with the process, so a crash leaves no stale lock.
pub(super) struct DataDirLock(
    #[expect(dead_code, reason = "the lock lives as long as the open file")] File,
);

impl DataDirLock {
    pub fn acquire(data_dir: &Path) -> Result<Self, StartError> {
        let start_error = |e: std::io::Error| StartError::Store {
            what: format!("the data directory {} cannot be used", data_dir.display()),
            cause: e.to_string(),
        };
        // It holds messages and endpoints, so only the hub's user may read it. An existing directory keeps its mode.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .map_err(start_error)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(data_dir.join("lock"))
            .map_err(start_error)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                Err(StartError::Locked(data_dir.display().to_string()))
            }
            Err(TryLockError::Error(error)) => Err(start_error(error)),
        }
    }
}
