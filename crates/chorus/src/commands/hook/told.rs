//! What a host was already told: the last message of this identity, and the last frame of each session.

use chorus_client::files::{Credentials, Place, atomic};
use chorus_wire::cursor::Cursor;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::PathBuf;

/// Sessions that are remembered; beyond it the one that was heard of longest ago begins anew, with what the hub still keeps.
const SESSIONS: usize = 64;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    /// With another identity in the credential file it says nothing.
    agent_id: String,
    hub_url: String,
    mail: Option<String>,
    frames: Vec<(String, String)>,
}

pub struct Told {
    path: PathBuf,
    saved: Saved,
    /// Two hooks at once would tell the same twice.
    _turn: Option<File>,
}

impl Told {
    /// A file that cannot be read is one that says nothing: what is told twice does less harm than a host that stops.
    pub fn open(place: &Place, who: &Credentials) -> Self {
        let name = place
            .state
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace("state", "told");
        let path = place.state.with_file_name(name);
        let turn = atomic::private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.with_extension("lock"));
        let turn = turn.ok().filter(|file| file.lock().is_ok());
        let saved = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| serde_json::from_str::<Saved>(&text).ok());
        let same = |saved: &Saved| saved.agent_id == who.agent_id && saved.hub_url == who.hub_url;
        let fresh = || Saved {
            agent_id: who.agent_id.clone(),
            hub_url: who.hub_url.clone(),
            ..Saved::default()
        };
        Self {
            path,
            saved: saved.filter(same).unwrap_or_else(fresh),
            _turn: turn,
        }
    }

    pub fn mail(&self) -> Option<Cursor> {
        self.saved.mail.as_deref()?.parse().ok()
    }

    pub fn frames(&self, session: &str) -> Option<Cursor> {
        self.saved
            .frames
            .iter()
            .find(|(known, _)| known == session)?
            .1
            .parse()
            .ok()
    }

    /// From here on, unless something was told before.
    pub fn begin(&mut self, heard: Cursor) -> chorus_client::Result<()> {
        if self.saved.mail.is_some() {
            Ok(())
        } else {
            self.save(Some(heard), None)
        }
    }

    pub fn save(
        &mut self,
        mail: Option<Cursor>,
        frames: Option<(String, Cursor)>,
    ) -> chorus_client::Result<()> {
        let before = (
            self.mail(),
            frames
                .as_ref()
                .and_then(|(session, _)| self.frames(session)),
        );
        if let Some(mail) = mail {
            self.saved.mail = Some(mail.to_string());
        }
        let newest = frames.as_ref().map(|(_, cursor)| *cursor).or(before.1);
        if let Some((session, cursor)) = frames {
            self.saved.frames.retain(|(known, _)| *known != session);
            self.saved.frames.push((session, cursor.to_string()));
            let over = self.saved.frames.len().saturating_sub(SESSIONS);
            self.saved.frames.drain(..over);
        }
        if (self.mail(), newest) == before {
            return Ok(());
        }
        let text = serde_json::to_string(&self.saved).unwrap_or_default();
        atomic::replace(&self.path, text.as_bytes())
    }
}
