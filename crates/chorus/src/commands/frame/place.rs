//! Where a session works, read from the files that git keeps: no process is started for it, so that a hook costs nothing.

use std::path::{Component, Path, PathBuf};

/// The working tree around a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub root: PathBuf,
    git: PathBuf,
}

impl Tree {
    /// Looks upwards from `folder`.
    pub fn around(folder: &Path) -> Option<Self> {
        let folder = std::path::absolute(folder).ok()?;
        let root = folder
            .ancestors()
            .find(|place| place.join(".git").exists())?
            .to_path_buf();
        let dot = root.join(".git");
        let git = match std::fs::read_to_string(&dot) {
            // A linked working tree: `gitdir: …/worktrees/name`.
            Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => dot,
        };
        Some(Self { root, git })
    }

    /// The branch, or the commit when there is none.
    pub fn branch(&self) -> Option<String> {
        let head = std::fs::read_to_string(self.git.join("HEAD")).ok()?;
        let head = head.trim();
        let named = head
            .strip_prefix("ref: ")
            .map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
        named.or_else(|| head.get(..12)).map(str::to_owned)
    }

    pub fn here() -> Option<Self> {
        Self::around(&std::env::current_dir().ok()?)
    }
}

/// A file by the name that all working trees of a repository share: its path from the root. What is no file, and what lies in
/// no repository, stays as it was written.
pub fn shared_name(written: &str) -> String {
    let path = Path::new(written);
    let Ok(path) = std::path::absolute(path) else {
        return written.to_owned();
    };
    let path = plain(&path);
    let known = path.exists() || written.contains('/');
    let tree = path.parent().and_then(Tree::around).filter(|_| known);
    let inside = tree.and_then(|tree| {
        path.strip_prefix(&tree.root)
            .ok()
            .map(|name| name.to_string_lossy().into_owned())
    });
    match inside {
        Some(name) if name.is_empty() => ".".into(),
        Some(name) => name,
        None => written.to_owned(),
    }
}

/// Without `.` and `..`, as written: links are not followed, the name is what counts.
fn plain(path: &Path) -> PathBuf {
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
