//! How far an agent has heard, kept beside its credentials so that a restart goes on where it stopped.

use super::{Credentials, Place, atomic, read_small};
use crate::{Error, Result};
use chorus_wire::cursor::Cursor;
use serde::{Deserialize, Serialize};
use std::fs::File;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Whose state this is: with another identity in the credential file it says nothing.
    pub agent_id: String,
    pub hub_url: String,
    /// The culture of the user, as registered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub culture: Option<String>,
    /// Everything up to here is in the history files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<String>,
    /// Messages that were shown but not yet answered: after a crash their senders are still owed a reply (SKL-16).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unanswered: Vec<String>,
}

impl State {
    /// The state of `who`; an empty one if none was saved or the saved one is somebody else's.
    pub fn read(place: &Place, who: &Credentials) -> Result<Self> {
        let fresh = || State {
            agent_id: who.agent_id.clone(),
            hub_url: who.hub_url.clone(),
            ..State::default()
        };
        let Some(text) = read_small(&place.state)? else {
            return Ok(fresh());
        };
        let saved: State = serde_json::from_str(&text)
            .map_err(|e| Error::file(&place.state, format!("{e}; remove it to start afresh")))?;
        let same = saved.agent_id == who.agent_id && saved.hub_url == who.hub_url;
        Ok(if same { saved } else { fresh() })
    }

    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor.as_deref()?.parse().ok()
    }

    pub fn save(&self, place: &Place) -> Result<()> {
        let mut text = serde_json::to_string(self).map_err(|e| Error::Input(e.to_string()))?;
        text.push('\n');
        atomic::replace(&place.state, text.as_bytes())
    }
}

/// Held by the one process that listens with these files: two would each show half of the messages.
pub struct Turn(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

impl Turn {
    pub fn take(place: &Place) -> Result<Self> {
        let path = place.state.with_extension("lock");
        atomic::private_folder(&atomic::folder_of(&path))?;
        let file = atomic::private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|e| Error::file(&path, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(std::fs::TryLockError::WouldBlock) => {
                let state = place.state.display();
                Err(Error::Input(format!(
                    "another listener keeps {state}; stop it or use other --credentials"
                )))
            }
            Err(std::fs::TryLockError::Error(e)) => Err(Error::file(&path, e)),
        }
    }
}
