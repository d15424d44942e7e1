//! Files that are there whole or not at all, and for their owner's eyes only.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file under way to its place. Made before the thing it will hold exists, so that a folder that cannot be written to
/// is known before a key is asked for.
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    pub fn for_target(target: &Path) -> Result<Self> {
        let wrong = |e| Error::file_error(target, e);
        let folder = parent_folder(target);
        create_private_folder(&folder)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.{:016x}.tmp", rand::random::<u64>()));
        let file = private_options()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(wrong)?;
        Ok(Self {
            file,
            temporary,
            target: target.to_owned(),
        })
    }

    /// Puts `bytes` in place of whatever is there.
    pub fn commit_replacing(self, bytes: &[u8]) -> Result<()> {
        self.write_synced(bytes)?;
        fs::rename(&self.temporary, &self.target)
            .map_err(|e| Error::file_error(&self.target, e))?;
        sync_parent_folder(&self.target)
    }

    /// Puts `bytes` there unless something else came first; false then, and that other thing is untouched.
    pub fn commit_if_absent(self, bytes: &[u8]) -> Result<bool> {
        self.write_synced(bytes)?;
        // Unlike a rename, a link never replaces.
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
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Puts `bytes` in place of what `path` holds.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    AtomicFile::for_target(path)?.commit_replacing(bytes)
}

/// The folder a file is in; the working directory for a bare name.
pub fn parent_folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Makes the folder if it is missing, closed to others; one that exists is its owner's business.
pub fn create_private_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|e| Error::file_error(folder, e))
}

/// Options whose new files only their owner may read.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A new name is durable only when its folder is.
pub fn sync_parent_folder(path: &Path) -> Result<()> {
    let folder = parent_folder(path);
    #[cfg(unix)]
    File::open(&folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::file_error(&folder, e))?;
    Ok(())
}
