//! What a host was already told: the last message of this identity, and the last frame of each session.

use chorus_client::files::{AgentCredentials, IdentityFiles, atomic_file};
use chorus_wire::cursor::Cursor;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// Sessions that are remembered; beyond it the one that was heard of longest ago begins anew, with what the hub still keeps.
const MAX_SESSIONS: usize = 64;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedProgress {
    /// With another identity in the credential file it says nothing.
    agent_id: String,
    hub_url: String,
    mail: Option<String>,
    frames: Vec<(String, String)>,
}

pub struct ReportProgress {
    path: PathBuf,
    saved: SavedProgress,
    /// Two hooks at once would tell the same twice.
    _lock: Option<File>,
}

impl ReportProgress {
    /// A file that cannot be read is one that says nothing: what is told twice does less harm than a host that stops.
    pub fn open_locked(files: &IdentityFiles, credentials: &AgentCredentials) -> Self {
        let name = files
            .state
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace("state", "told");
        let path = files.state.with_file_name(name);
        let lock_file = atomic_file::private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.with_extension("lock"));
        let lock_file = lock_file.ok().filter(|file| file.lock().is_ok());
        let saved = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| serde_json::from_str::<SavedProgress>(&text).ok());
        let is_same_agent = |saved: &SavedProgress| {
            saved.agent_id == credentials.agent_id && saved.hub_url == credentials.hub_url
        };
        let new_progress = || SavedProgress {
            agent_id: credentials.agent_id.clone(),
            hub_url: credentials.hub_url.clone(),
            ..SavedProgress::default()
        };
        Self {
            path,
            saved: saved.filter(is_same_agent).unwrap_or_else(new_progress),
            _lock: lock_file,
        }
    }

    pub fn message_cursor(&self) -> Option<Cursor> {
        self.saved.mail.as_deref()?.parse().ok()
    }

    pub fn frame_cursor(&self, session: &str) -> Option<Cursor> {
        self.saved
            .frames
            .iter()
            .find(|(known, _)| known == session)?
            .1
            .parse()
            .ok()
    }

    /// From here on, unless something was told before.
    pub fn start_at(&mut self, cursor: Cursor) -> chorus_client::Result<()> {
        if self.saved.mail.is_some() {
            Ok(())
        } else {
            self.save_progress(Some(cursor), None)
        }
    }

    pub fn save_progress(
        &mut self,
        mail: Option<Cursor>,
        frames: Option<(String, Cursor)>,
    ) -> chorus_client::Result<()> {
        let before = (
            self.message_cursor(),
            frames
                .as_ref()
                .and_then(|(session, _)| self.frame_cursor(session)),
        );
        if let Some(mail) = mail {
            self.saved.mail = Some(mail.to_string());
        }
        let newest = frames.as_ref().map(|(_, cursor)| *cursor).or(before.1);
        if let Some((session, cursor)) = frames {
            self.saved.frames.retain(|(known, _)| *known != session);
            self.saved.frames.push((session, cursor.to_string()));
            let excess = self.saved.frames.len().saturating_sub(MAX_SESSIONS);
            self.saved.frames.drain(..excess);
        }
        if (self.message_cursor(), newest) == before {
            return Ok(());
        }
        let text = serde_json::to_string(&self.saved).unwrap_or_default();
        atomic_file::replace_file(&self.path, text.as_bytes())
    }
}
