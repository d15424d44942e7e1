//! An agent's local files: credentials, message history and inbox cursor (R-33, SKL-18…31).

pub mod atomic_file;
pub mod credentials;
pub mod history;
pub mod inbox_state;

pub use credentials::AgentCredentials;
pub use history::{HistoryLine, HistoryStore};
pub use inbox_state::InboxState;

use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The credential file of a workspace (document 002).
pub const WORKSPACE_FILE: &str = "chorus-credentials.json";
/// The credential file below an agent's home (document 001).
pub const HOME_FILE: &str = "config.json";

/// The three paths of one identity. They are side by side, so that two identities never share a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    pub credentials: PathBuf,
    /// A folder with one file per peer.
    pub history: PathBuf,
    pub state: PathBuf,
}

impl IdentityFiles {
    /// A file beside the state file. The state file of a second identity has a prefix, which this one gets too.
    pub(crate) fn beside_state(&self, name: &str) -> PathBuf {
        let state = self.state.file_name().unwrap_or_default();
        let state = state.to_string_lossy();
        self.state.with_file_name(state.replace("state.json", name))
    }

    /// the explicit file, else the workspace's if it exists, else the one in `home` (`$CHORUS_HOME` or `~/.chorus`).
    pub fn locate(explicit: Option<&Path>, workspace: &Path, home: &Path) -> Self {
        let in_workspace = workspace.join(WORKSPACE_FILE);
        match explicit {
            Some(explicit) => Self::beside_credentials(workspace.join(explicit)),
            None if in_workspace.exists() => Self::beside_credentials(in_workspace),
            None => Self::beside_credentials(home.join(HOME_FILE)),
        }
    }

    /// `config.json` has `history/` and `state.json` beside it, `chorus-credentials.json` has `chorus-history/` and
    /// `chorus-state.json`, and any other `bot.json` has `bot-history/` and `bot-state.json`.
    pub fn beside_credentials(credentials: PathBuf) -> Self {
        let stem = credentials
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let prefix = match stem.as_str() {
            "config" => String::new(),
            stem => format!("{}-", stem.strip_suffix("-credentials").unwrap_or(stem)),
        };
        let folder = credentials
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        Self {
            history: folder.join(format!("{prefix}history")),
            state: folder.join(format!("{prefix}state.json")),
            credentials,
        }
    }
}

/// The entries of a JSON list; none when the file does not exist.
pub(crate) fn read_list<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let Some(text) = read_small_file(path)? else {
        return Ok(Vec::new());
    };
    serde_json::from_str(&text)
        .map_err(|e| Error::file_error(path, format!("{e}; remove it to start afresh")))
}

/// A small file as text; `None` when it does not exist.
pub(crate) fn read_small_file(path: &Path) -> Result<Option<String>> {
    const MAX_BYTES: u64 = 1024 * 1024;
    let size = match std::fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file_error(path, e)),
    };
    if size > MAX_BYTES {
        return Err(Error::file_error(
            path,
            format!("is larger than {MAX_BYTES} bytes"),
        ));
    }
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|e| Error::file_error(path, e))
}
