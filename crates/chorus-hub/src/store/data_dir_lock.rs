//! The lock on the data directory: a second hub on the same directory does not start.

use crate::start_error::StartError;
use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file lock of the operating system: it ends with the process, so a crash leaves no stale lock.
pub(super) struct DataDirLock {
    file: File,
    path: PathBuf,
}

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
        let path = data_dir.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(start_error)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => {
                Err(StartError::Locked(data_dir.display().to_string()))
            }
            Err(TryLockError::Error(error)) => Err(start_error(error)),
        }
    }

    /// Whether the locked file is still the one in the data directory. If the directory was moved or deleted, what this hub
    /// writes is lost to every later start, and a second hub could start under the same path.
    pub fn check_in_place(&self) -> Result<(), String> {
        let gone = |cause: String| {
            format!(
                "the data directory was moved or deleted: {}: {cause}",
                self.path.display()
            )
        };
        let held = self.file.metadata().map_err(|e| gone(e.to_string()))?;
        let named = std::fs::metadata(&self.path).map_err(|e| gone(e.to_string()))?;
        if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
            Ok(())
        } else {
            Err(gone("it is another file".into()))
        }
    }
}
