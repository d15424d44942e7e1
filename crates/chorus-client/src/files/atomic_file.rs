//! Writes files atomically, and readable only by their owner.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A temporary file that will become `target`. It is created before its content exists, so that an unwritable folder is
/// found before the hub issues a key.
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    pub fn for_target(target: &Path) -> Result<Self> {
        let file_error = |e| Error::file_error(target, e);
        let folder = parent_folder(target);
        create_private_folder(&folder)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.{:016x}.tmp", rand::random::<u64>()));
        let file = private_options()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(file_error)?;
        Ok(Self {
            file,
            temporary,
            target: target.to_owned(),
        })
    }

    /// Writes `bytes` to the target, replacing an existing file.
    pub fn commit_replacing(self, bytes: &[u8]) -> Result<()> {
        self.write_synced(bytes)?;
        fs::rename(&self.temporary, &self.target)
            .map_err(|e| Error::file_error(&self.target, e))?;
        sync_parent_folder(&self.target)
    }

    /// Writes `bytes` to the target unless a file exists there; returns false then and leaves that file untouched.
    pub fn commit_if_absent(self, bytes: &[u8]) -> Result<bool> {
        self.write_synced(bytes)?;
        // Unlike a rename, a hard link never replaces a file.
        match fs::hard_link(&self.temporary, &self.target) {
            Ok(()) => sync_parent_folder(&self.target).map(|()| true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::file_error(&self.target, e)),
        }
    }

    fn write_synced(&self, bytes: &[u8]) -> Result<()> {
        let written = (&self.file)
            .write_all(bytes)
            .and_then(|()| self.file.sync_all());
        written.map_err(|e| Error::file_error(&self.target, e))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Fails after a rename, when the temporary file no longer exists.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Replaces the content of `path` with `bytes`.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    AtomicFile::for_target(path)?.commit_replacing(bytes)
}

/// The folder of a file; the working directory for a bare name.
pub fn parent_folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Creates the folder with mode 0700 if it is missing; the mode of an existing one is not changed.
pub fn create_private_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|e| Error::file_error(folder, e))
}

/// Options that create files with mode 0600.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Syncs the parent folder: a new file name is durable only after that.
pub fn sync_parent_folder(path: &Path) -> Result<()> {
    let folder = parent_folder(path);
    #[cfg(unix)]
    File::open(&folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::file_error(&folder, e))?;
    Ok(())
}
