//! One waker for a session: a lock file named after it (D-115).

use crate::{command_client, fail::Fail};
use chorus_client::files::atomic_file;
use chorus_wire::frame::ScopeIdent;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Held while a waker runs; dropping it removes the file.
pub struct SessionLock {
    path: PathBuf,
    _file: File,
}

impl SessionLock {
    /// The lock of a session; `None` when another waker has it.
    pub fn acquire(session: &ScopeIdent) -> Result<Option<Self>, Fail> {
        let folder = command_client::home_folder()?.join("wake");
        atomic_file::create_private_folder(&folder)?;
        remove_abandoned(&folder);
        let path = folder.join(format!("{session}.lock"));
        Self::acquire_file(path)
    }

    fn acquire_file(path: PathBuf) -> Result<Option<Self>, Fail> {
        let file_error = |e: &dyn std::fmt::Display| {
            Fail::from(chorus_client::Error::file_error(path.clone(), e))
        };
        loop {
            let file = atomic_file::private_options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|e| file_error(&e))?;
            match file.try_lock() {
                Ok(()) if is_same_file(&file, &path) => {
                    return Ok(Some(Self { path, _file: file }));
                }
                // Removed between opening and locking: the waker before this one has just ended.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(file_error(&error)),
            }
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Still locked, so no other waker holds it.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.ino() == named.ino() && open.dev() == named.dev(),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// Removes the files of wakers that were killed.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if let Ok(file) = fs::OpenOptions::new().write(true).open(&path)
            && file.try_lock().is_ok()
            && is_same_file(&file, &path)
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a waker of any session runs.
pub fn has_running_waker() -> bool {
    let Ok(folder) = command_client::home_folder().map(|home| home.join("wake")) else {
        return false;
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let file = fs::OpenOptions::new().write(true).open(entry.path());
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    })
}
