//! Where a session works, read from the files that git keeps: no process is started for it, so that a hook costs nothing.

use std::path::{Component, Path, PathBuf};

/// The working tree around a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitTree {
    pub root: PathBuf,
    git_folder: PathBuf,
}

impl GitTree {
    /// Looks upwards from `folder`.
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

    /// The branch, or the commit when there is none.
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

/// A file by the name that all working trees of a repository share: its path from the root. What is no file, and what lies in
/// no repository, stays as it was written.
pub fn shared_name(written_name: &str) -> String {
    let path = Path::new(written_name);
    let Ok(path) = std::path::absolute(path) else {
        return written_name.to_owned();
    };
    let path = normalize_path(&path);
    let known = path.exists() || written_name.contains('/');
    let tree = path
        .parent()
        .and_then(GitTree::find_around)
        .filter(|_| known);
    let inside = tree.and_then(|tree| {
        path.strip_prefix(&tree.root)
            .ok()
            .map(|name| name.to_string_lossy().into_owned())
    });
    match inside {
        Some(name) if name.is_empty() => ".".into(),
        Some(name) => name,
        None => written_name.to_owned(),
    }
}

/// Without `.` and `..`, as written: links are not followed, the name is what counts.
fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}
