//! The agent's inbox cursor, saved beside its credentials so that a restart continues where it stopped.

use super::{AgentCredentials, IdentityFiles, atomic_file, read_small_file};
use crate::{Error, Result};
use chorus_wire::cursor::Cursor;
use serde::{Deserialize, Serialize};
use std::fs::File;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxState {
    /// The agent of this state: with another identity in the credential file the state is ignored.
    pub agent_id: String,
    pub hub_url: String,
    /// The culture of the user, as registered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub culture: Option<String>,
    /// Everything up to here is in the history files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
    /// Everything that this agent sent up to here is in the history files, also what another program sent with its key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent_cursor: Option<String>,
    /// Messages that were shown but not yet answered: after a crash their replies are still sent (SKL-16).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unanswered: Vec<String>,
    /// The times of answers that `send --wait` printed and filed before a listener came to them: it does not print them again.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub printed_answers: Vec<String>,
}

impl InboxState {
    /// The saved state of this agent; an empty one if there is none or it belongs to another agent.
    pub fn read_for(files: &IdentityFiles, credentials: &AgentCredentials) -> Result<Self> {
        let new_state = || InboxState {
            agent_id: credentials.agent_id.clone(),
            hub_url: credentials.hub_url.clone(),
            ..InboxState::default()
        };
        let Some(text) = read_small_file(&files.state)? else {
            return Ok(new_state());
        };
        let saved: InboxState = serde_json::from_str(&text).map_err(|e| {
            Error::file_error(&files.state, format!("{e}; remove it to start afresh"))
        })?;
        let is_same_agent =
            saved.agent_id == credentials.agent_id && saved.hub_url == credentials.hub_url;
        Ok(if is_same_agent { saved } else { new_state() })
    }

    pub fn parse_cursor(&self) -> Option<Cursor> {
        self.cursor.as_deref()?.parse().ok()
    }

    pub fn save(&self, files: &IdentityFiles) -> Result<()> {
        let mut text = serde_json::to_string(self).map_err(|e| Error::Input(e.to_string()))?;
        text.push('\n');
        atomic_file::replace_file(&files.state, text.as_bytes())
    }
}

/// A file lock of the one process that listens with these files: two would each show half of the messages.
pub struct StateLock(
    #[expect(dead_code, reason = "the lock lasts as long as the file is open")] File,
);

impl StateLock {
    /// Whether a process listens with these files. Nothing is created.
    pub fn is_held(files: &IdentityFiles) -> bool {
        let Ok(file) = File::open(files.state.with_extension("lock")) else {
            return false;
        };
        matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
    }

    pub fn acquire(files: &IdentityFiles) -> Result<Self> {
        let path = files.state.with_extension("lock");
        atomic_file::create_private_folder(&atomic_file::parent_folder(&path))?;
        let file = atomic_file::private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|e| Error::file_error(&path, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(std::fs::TryLockError::WouldBlock) => {
                let state = files.state.display();
                Err(Error::Input(format!(
                    "another listener keeps {state}; stop it or use other --credentials"
                )))
            }
            Err(std::fs::TryLockError::Error(e)) => Err(Error::file_error(&path, e)),
        }
    }
}
