//! Changes several files as one: all of them, or none.

use crate::fail::{ExitKind, Fail};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Max bytes of a host's configuration file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The old and the new content of a file; `None` is no file.
#[derive(Debug)]
struct FileChange {
    path: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

/// The planned changes. All files are read and parsed before any is written, so that an invalid file stops the command.
#[derive(Debug, Default)]
pub struct ChangePlan {
    changes: Vec<FileChange>,
}

/// The applied changes, so that they can be undone.
#[derive(Debug, Default)]
struct AppliedChanges<'a> {
    files: Vec<&'a FileChange>,
    folders: Vec<PathBuf>,
}

pub fn file_error(path: &Path, message: impl std::fmt::Display) -> Fail {
    Fail::new(
        ExitKind::Usage,
        "FILE",
        format!("{}: {message}", path.display()),
    )
}

/// A small file as text; `None` when it does not exist.
pub fn read_file(path: &Path) -> Result<Option<String>, Fail> {
    let size = match fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(file_error(path, e)),
    };
    if size > MAX_FILE_BYTES {
        return Err(file_error(
            path,
            format!("is larger than {MAX_FILE_BYTES} bytes"),
        ));
    }
    fs::read_to_string(path)
        .map(Some)
        .map_err(|e| file_error(path, e))
}

impl ChangePlan {
    /// Plans to change `path` from `before` to `after`; equal contents are no change.
    pub fn add_change(&mut self, path: &Path, before: Option<String>, after: Option<String>) {
        if before != after {
            // A symbolic link stays: its target is changed.
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let before = before.map(String::into_bytes);
            let after = after.map(String::into_bytes);
            self.changes.push(FileChange {
                path,
                before,
                after,
            });
        }
    }

    pub fn changed_paths(&self) -> Vec<&Path> {
        self.changes
            .iter()
            .map(|change| change.path.as_path())
            .collect()
    }

    /// Writes all changes, then calls `check`. If anything fails, every file is restored.
    pub fn apply_or_undo(&self, check: impl FnOnce() -> Result<(), Fail>) -> Result<(), Fail> {
        let mut applied = AppliedChanges::default();
        let written = self
            .changes
            .iter()
            .try_for_each(|change| applied.apply_change(change));
        let outcome = written.and_then(|()| check());
        if outcome.is_err() {
            applied.undo_all();
        }
        outcome
    }
}

impl<'a> AppliedChanges<'a> {
    fn apply_change(&mut self, change: &'a FileChange) -> Result<(), Fail> {
        let current = match fs::read(&change.path) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(file_error(&change.path, e)),
        };
        if current != change.before {
            return Err(file_error(
                &change.path,
                "changed while it was being edited; run the command again",
            ));
        }
        if change.after.is_some() {
            self.create_folder(change.path.parent().unwrap_or(Path::new(".")))?;
        }
        write_or_remove(&change.path, change.after.as_deref())?;
        self.files.push(change);
        Ok(())
    }

    /// Creates a folder and its parents, and records which are new.
    fn create_folder(&mut self, folder: &Path) -> Result<(), Fail> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|part| !part.as_os_str().is_empty() && !part.exists())
            .collect();
        for part in missing.into_iter().rev() {
            fs::create_dir(part).map_err(|e| file_error(part, e))?;
            self.folders.push(part.to_owned());
        }
        Ok(())
    }

    fn undo_all(self) {
        for change in self.files.into_iter().rev() {
            if let Err(fail) = write_or_remove(&change.path, change.before.as_deref()) {
                tracing::warn!("a file could not be restored: {fail:?}");
            }
        }
        for folder in self.folders.into_iter().rev() {
            // Fails for a folder with other files, which then stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes a file atomically: to a temporary file beside it, synced, then renamed, with the old permissions. `None` removes
/// the file.
fn write_or_remove(path: &Path, bytes: Option<&[u8]>) -> Result<(), Fail> {
    let write_error = |e| file_error(path, e);
    let Some(bytes) = bytes else {
        return match fs::remove_file(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(write_error(e)),
            Ok(()) | Err(_) => Ok(()),
        };
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&temporary);
        write_error(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> Option<String> {
        read_file(path).unwrap()
    }

    #[test]
    fn a_failed_plan_restores_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old.json");
        let new = folder.path().join("a/b/new.md");
        fs::write(&old, "{}").unwrap();
        let mut plan = ChangePlan::default();
        plan.add_change(&old, Some("{}".into()), Some("{ }".into()));
        plan.add_change(&new, None, Some("x".into()));
        let refused = plan.apply_or_undo(|| {
            assert_eq!(
                (text(&old).unwrap(), text(&new).unwrap()),
                ("{ }".into(), "x".into())
            );
            Err(Fail::usage_error("no"))
        });
        assert!(refused.is_err());
        assert_eq!((text(&old), text(&new)), (Some("{}".into()), None));
        assert!(!folder.path().join("a").exists());
        plan.apply_or_undo(|| Ok(())).unwrap();
        assert_eq!(
            (text(&old).unwrap(), text(&new).unwrap()),
            ("{ }".into(), "x".into())
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "no temporary file remains"
        );
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("1");
        let second = folder.path().join("2");
        fs::write(&second, "theirs").unwrap();
        let mut plan = ChangePlan::default();
        plan.add_change(&first, None, Some("ours".into()));
        plan.add_change(&second, Some("older".into()), Some("ours".into()));
        assert!(plan.apply_or_undo(|| Ok(())).is_err());
        assert_eq!((text(&first), text(&second)), (None, Some("theirs".into())));
    }

    #[test]
    fn links_and_permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let link = folder.path().join("link");
        fs::write(&real, "a").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut plan = ChangePlan::default();
        plan.add_change(&link, Some("a".into()), Some("b".into()));
        plan.apply_or_undo(|| Ok(())).unwrap();
        assert_eq!(text(&real).unwrap(), "b");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
}
