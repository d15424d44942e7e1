//! Finds the git working tree and branch by reading git's files; starting git would make hooks slow.

use std::path::{Component, Path, PathBuf};

/// The working tree around a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitTree {
    pub root: PathBuf,
    git_folder: PathBuf,
}

impl GitTree {
    /// Searches upwards from `folder`.
    pub fn find_around(folder: &Path) -> Option<Self> {
        let folder = std::path::absolute(folder).ok()?;
        let root = folder
            .ancestors()
            .find(|ancestor| ancestor.join(".git").exists())?
            .to_path_buf();
        let dot_git = root.join(".git");
        let git_folder = match std::fs::read_to_string(&dot_git) {
            // A linked working tree: `gitdir: …/worktrees/name`.
            Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => dot_git,
        };
        Some(Self { root, git_folder })
    }

    /// The branch, or the commit without one.
    pub fn current_branch(&self) -> Option<String> {
        let head = std::fs::read_to_string(self.git_folder.join("HEAD")).ok()?;
        let head = head.trim();
        let named = head
            .strip_prefix("ref: ")
            .map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
        named.or_else(|| head.get(..12)).map(str::to_owned)
    }

    pub fn find_current() -> Option<Self> {
        Self::find_around(&std::env::current_dir().ok()?)
    }
}

/// The name of a file that all working trees of a repository share: its path from the root. A name that is no file, or is
/// outside a repository, is returned unchanged.
pub fn shared_name(written_name: &str) -> String {
    let path = Path::new(written_name);
    let Ok(path) = std::path::absolute(path) else {
        return written_name.to_owned();
    };
    let path = normalize_path(&path);
    let is_path = path.exists() || written_name.contains('/');
    let tree = path
        .parent()
        .and_then(GitTree::find_around)
        .filter(|_| is_path);
    let path_from_root = tree.and_then(|tree| {
        path.strip_prefix(&tree.root)
            .ok()
            .map(|name| name.to_string_lossy().into_owned())
    });
    match path_from_root {
        Some(name) if name.is_empty() => ".".into(),
        Some(name) => name,
        None => written_name.to_owned(),
    }
}

/// Removes `.` and `..` without following links, because only the name counts.
fn normalize_path(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normalized.push(part)
            }
        }
    }
    normalized
}
