//! How far a host's hooks have reported: the message cursor of this identity and the frame cursor of each session.

use super::wake_progress::SavedWakes;
use chorus_client::files::{AgentCredentials, IdentityFiles, atomic_file};
use chorus_wire::cursor::Cursor;
use chorus_wire::time::UnixMicros;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// Max sessions whose frame cursor and `Stop` count are saved; beyond it the oldest is dropped and starts again with what
/// the hub keeps.
const MAX_SESSIONS: usize = 64;
/// Max messages that the model acknowledged or a wake showed, and that no hook has passed yet; beyond it the oldest is reported
/// once more. A session that only wakes start may go a day without a hook that passes them.
const MAX_ACKNOWLEDGED: usize = 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SavedProgress {
    /// With another identity in the credential file the saved progress is ignored.
    agent_id: String,
    hub_url: String,
    mail: Option<String>,
    frames: Vec<(String, String)>,
    /// When the newest open item that each session was told of was opened.
    items: Vec<(String, String)>,
    /// The newest message of which a `Stop` hook has said that it waits.
    announced: Option<String>,
    /// How often `Stop` hooks kept each session working since its user last wrote.
    stops: Vec<(String, u32)>,
    /// Messages that the model acknowledged with `chorus_inbox`, or whose text a wake showed: it has read them, so they are
    /// not reported.
    pub(super) acknowledged: Vec<String>,
    pub(super) wakes: SavedWakes,
}

pub struct ReportProgress {
    path: PathBuf,
    pub(super) saved: SavedProgress,
    /// A file lock: two hooks at once would report the same news twice.
    _lock: Option<File>,
}

impl ReportProgress {
    /// Opens the progress file. An unreadable file counts as empty: a repeated report does less harm than a failing hook.
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
        let mut progress = Self {
            path,
            saved: saved.filter(is_same_agent).unwrap_or_else(new_progress),
            _lock: lock_file,
        };
        progress.release_unconfirmed();
        progress
    }

    pub fn message_cursor(&self) -> Option<Cursor> {
        self.saved.mail.as_deref()?.parse().ok()
    }

    pub fn frame_cursor(&self, session: &str) -> Option<Cursor> {
        self.saved
            .frames
            .iter()
            .find(|(name, _)| name == session)?
            .1
            .parse()
            .ok()
    }

    pub fn items_told_at(&self, session: &str) -> Option<UnixMicros> {
        let announced = self.saved.items.iter().find(|(name, _)| name == session)?;
        UnixMicros::parse(&announced.1)
    }

    /// Saves that a session was told of the open items up to the newest one.
    pub fn save_items_told(
        &mut self,
        session: String,
        newest: UnixMicros,
    ) -> chorus_client::Result<()> {
        if self.items_told_at(&session) == Some(newest) {
            return Ok(());
        }
        self.saved.items.retain(|(name, _)| *name != session);
        self.saved.items.push((session, newest.to_string()));
        let excess = self.saved.items.len().saturating_sub(MAX_SESSIONS);
        self.saved.items.drain(..excess);
        self.write_file()
    }

    /// The newest message that was reported or announced.
    pub fn announced_cursor(&self) -> Option<Cursor> {
        let announced = self
            .saved
            .announced
            .as_deref()
            .and_then(|text| text.parse().ok());
        announced.max(self.message_cursor())
    }

    pub fn stop_count(&self, session: &str) -> u32 {
        self.saved
            .stops
            .iter()
            .find(|(name, _)| name == session)
            .map_or(0, |(_, count)| *count)
    }

    /// Saves that a `Stop` hook announced the messages up to `cursor` to this session.
    pub fn save_announcement(
        &mut self,
        session: &str,
        cursor: Cursor,
    ) -> chorus_client::Result<()> {
        let count = self.stop_count(session) + 1;
        // Never back: what was announced once would be announced again.
        let newest = self
            .announced_cursor()
            .map_or(cursor, |announced| announced.max(cursor));
        self.saved.announced = Some(newest.to_string());
        self.saved.stops.retain(|(name, _)| name != session);
        self.saved.stops.push((session.to_owned(), count));
        let excess = self.saved.stops.len().saturating_sub(MAX_SESSIONS);
        self.saved.stops.drain(..excess);
        self.write_file()
    }

    /// Forgets the `Stop` hooks of a session, because its user has written.
    pub fn reset_stops(&mut self, session: &str) -> chorus_client::Result<()> {
        if self.stop_count(session) == 0 {
            return Ok(());
        }
        self.saved.stops.retain(|(name, _)| name != session);
        self.write_file()
    }

    /// Saves that the model has read these messages.
    pub fn save_acknowledged(&mut self, trace_ids: Vec<String>) -> chorus_client::Result<()> {
        self.saved.acknowledged.extend(trace_ids);
        let excess = self
            .saved
            .acknowledged
            .len()
            .saturating_sub(MAX_ACKNOWLEDGED);
        self.saved.acknowledged.drain(..excess);
        self.write_file()
    }

    pub fn is_acknowledged(&self, trace_id: &str) -> bool {
        self.saved
            .acknowledged
            .iter()
            .any(|known| known == trace_id)
    }

    /// Whether the model has read a message; asked once, when a hook comes to it.
    pub fn take_acknowledged(&mut self, trace_id: &str) -> bool {
        let before = self.saved.acknowledged.len();
        self.saved.acknowledged.retain(|known| known != trace_id);
        self.saved.acknowledged.len() < before
    }

    /// Starts reporting after `cursor`, unless there was an earlier report.
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
            self.saved.frames.retain(|(name, _)| *name != session);
            self.saved.frames.push((session, cursor.to_string()));
            let excess = self.saved.frames.len().saturating_sub(MAX_SESSIONS);
            self.saved.frames.drain(..excess);
        }
        if (self.message_cursor(), newest) == before {
            return Ok(());
        }
        self.write_file()
    }

    pub(super) fn write_file(&self) -> chorus_client::Result<()> {
        let text = serde_json::to_string(&self.saved).unwrap_or_default();
        atomic_file::replace_file(&self.path, text.as_bytes())
    }
}
