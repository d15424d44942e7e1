//! The workspaces whose credential file the user has confirmed for the processes of hosts.
//!
//! A file in a checkout comes from its authors. A host starts `chorus` in every checkout, so without a confirmation the
//! authors of any repository could choose the hub that the user's agent listens to.

use crate::{command_client, fail::Fail};
use chorus_client::files::{WORKSPACE_FILE, atomic_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The list, in the user's own folder.
const LIST_FILE: &str = "confirmed-workspaces.json";
/// Max confirmed workspaces; beyond it the oldest must be confirmed again.
const MAX_WORKSPACES: usize = 1_000;

/// A confirmed file. With other content it is another identity or another hub, and must be confirmed again.
#[derive(Debug, Serialize, Deserialize)]
struct ConfirmedFile {
    path: PathBuf,
    sha256: String,
}

pub struct ConfirmedWorkspaces {
    list: PathBuf,
    files: Vec<ConfirmedFile>,
}

impl ConfirmedWorkspaces {
    /// The user's list. An unreadable one confirms nothing.
    pub fn read_list() -> Result<Self, Fail> {
        let list = command_client::home_folder()?.join(LIST_FILE);
        let files = std::fs::read_to_string(&list)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        Ok(Self { list, files })
    }

    /// Whether the user confirmed this file with its present content.
    pub fn has_file(&self, file: &Path) -> bool {
        let Ok(current) = ConfirmedFile::of(file) else {
            return false;
        };
        self.files
            .iter()
            .any(|known| known.path == current.path && known.sha256 == current.sha256)
    }

    /// Whether the user confirmed this file, with any content.
    pub fn has_path(&self, file: &Path) -> bool {
        std::fs::canonicalize(file)
            .is_ok_and(|path| self.files.iter().any(|known| known.path == path))
    }

    pub fn add_file(mut self, file: &Path) -> Result<(), Fail> {
        let confirmed = ConfirmedFile::of(file)?;
        self.files.retain(|known| known.path != confirmed.path);
        self.files.push(confirmed);
        let excess = self.files.len().saturating_sub(MAX_WORKSPACES);
        self.files.drain(..excess);
        self.write_list()
    }

    /// Removes a workspace, also one whose file is gone; returns whether it was confirmed.
    pub fn remove_folder(mut self, folder: &Path) -> Result<bool, Fail> {
        let path = folder.join(WORKSPACE_FILE);
        let before = self.files.len();
        self.files.retain(|known| known.path != path);
        let is_removed = self.files.len() < before;
        if is_removed {
            self.write_list()?;
        }
        Ok(is_removed)
    }

    fn write_list(&self) -> Result<(), Fail> {
        let text = serde_json::to_string_pretty(&self.files)
            .map_err(|e| Fail::usage_error(e.to_string()))?;
        Ok(atomic_file::replace_file(&self.list, text.as_bytes())?)
    }
}

impl ConfirmedFile {
    fn of(file: &Path) -> Result<Self, Fail> {
        let file_error = |e| chorus_client::Error::file_error(file, e);
        let path = std::fs::canonicalize(file).map_err(file_error)?;
        let bytes = std::fs::read(&path).map_err(file_error)?;
        let sha256 = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self { path, sha256 })
    }
}
