//! This agent's own connection string: the one URL to paste into a service (CHN-01…04, R-70).

use crate::files::{Credentials, Place, atomic, read_small};
use crate::http::Call;
use crate::{Client, Error, Result};
use chorus_wire::channel::connection::{Connection, Revoked};
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const PATH: &str = "/agent/connection";

impl Client {
    /// A new connection string; the one before stops working. Not tried again by itself: an answer that got lost would have
    /// been another one.
    pub async fn connect(&self) -> Result<Secret> {
        let connection: Connection = self.data(Call::post(PATH, "{}".into())).await?;
        Ok(connection.connection_string)
    }

    /// Nobody reaches this agent by a connection string any more; whether there was one.
    pub async fn disconnect(&self) -> Result<bool> {
        let revoked: Revoked = self.ask_patiently(Call::delete(PATH)).await?.data()?.0;
        Ok(revoked.revoked)
    }
}

/// The connection string as this agent keeps it: the hub knows only its hash, so whoever lost it needs a new one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connected {
    agent_id: String,
    hub_url: String,
    pub connection_string: Secret,
}

impl Connected {
    pub fn of(who: &Credentials, connection_string: Secret) -> Self {
        Self {
            agent_id: who.agent_id.clone(),
            hub_url: who.hub_url.clone(),
            connection_string,
        }
    }

    fn file(place: &Place) -> PathBuf {
        let state = place
            .state
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        place
            .state
            .with_file_name(state.replace("state.json", "connection.json"))
    }

    /// The saved one, unless it is another identity's.
    pub fn read(place: &Place, who: &Credentials) -> Result<Option<Self>> {
        let path = Self::file(place);
        let Some(text) = read_small(&path)? else {
            return Ok(None);
        };
        let saved: Self = serde_json::from_str(&text)
            .map_err(|e| Error::file(&path, format!("{e}; remove it to start afresh")))?;
        Ok(Some(saved)
            .filter(|saved| saved.agent_id == who.agent_id && saved.hub_url == who.hub_url))
    }

    pub fn save(&self, place: &Place) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|e| Error::Input(e.to_string()))?;
        atomic::replace(&Self::file(place), text.as_bytes())
    }

    pub fn forget(place: &Place) -> Result<()> {
        let path = Self::file(place);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
