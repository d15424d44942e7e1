//! One hub per data directory: a second one refuses to start and says why.

use crate::hub::StartError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Held by the operating system for this process: a crash releases it, a stale file does not keep it.
pub(super) struct DataDirLock(
    #[expect(dead_code, reason = "the lock lives as long as the open file")] File,
);

impl DataDirLock {
    pub fn acquire(data_dir: &Path) -> Result<Self, StartError> {
        let start_error = |e: std::io::Error| StartError::Store {
            what: format!("the data directory {} cannot be used", data_dir.display()),
            cause: e.to_string(),
        };
        // Messages and endpoints are in it: the directory is the hub's alone, unless somebody made it otherwise before.
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
