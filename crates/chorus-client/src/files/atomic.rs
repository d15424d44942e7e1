//! Files that are there whole or not at all, and for their owner's eyes only.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file under way to its place. Made before the thing it will hold exists, so that a folder that cannot be written to
/// is known before a key is asked for.
pub struct Draft {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl Draft {
    pub fn for_target(target: &Path) -> Result<Self> {
        let wrong = |e| Error::file(target, e);
        let folder = folder_of(target);
        private_folder(&folder)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.{:016x}.tmp", rand::random::<u64>()));
        let file = private()
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
    pub fn replace(self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        fs::rename(&self.temporary, &self.target).map_err(|e| Error::file(&self.target, e))?;
        sync_folder(&self.target)
    }

    /// Puts `bytes` there unless something else came first; false then, and that other thing is untouched.
    pub fn create(self, bytes: &[u8]) -> Result<bool> {
        self.write(bytes)?;
        // Unlike a rename, a link never replaces.
        match fs::hard_link(&self.temporary, &self.target) {
            Ok(()) => sync_folder(&self.target).map(|()| true),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::file(&self.target, e)),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        let written = (&self.file)
            .write_all(bytes)
            .and_then(|()| self.file.sync_all());
        written.map_err(|e| Error::file(&self.target, e))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Puts `bytes` in place of what `path` holds.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    Draft::for_target(path)?.replace(bytes)
}

/// The folder a file is in; the working directory for a bare name.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Makes the folder if it is missing, closed to others; one that exists is its owner's business.
pub fn private_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|e| Error::file(folder, e))
}

/// Options whose new files only their owner may read.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A new name is durable only when its folder is.
pub fn sync_folder(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    #[cfg(unix)]
    File::open(&folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::file(&folder, e))?;
    Ok(())
}
