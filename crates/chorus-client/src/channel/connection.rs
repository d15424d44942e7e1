//! This agent's connection string: the URL to paste into a service (CHN-01…04, R-70).

use crate::files::{AgentCredentials, IdentityFiles, atomic_file, read_small_file};
use crate::http::ApiCall;
use crate::{Error, HubClient, Result};
use chorus_wire::channel::connection::{ConnectionCreated, ConnectionRevoked};
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const CONNECTION_PATH: &str = "/agent/connection";

impl HubClient {
    /// Creates a connection string; the previous one stops working.
    pub async fn create_connection(&self) -> Result<Secret> {
        let connection: ConnectionCreated = self
            .fetch_data_with_retry(ApiCall::post(CONNECTION_PATH, "{}".into()))
            .await?;
        Ok(connection.connection_string)
    }

    /// Revokes the connection string; returns whether there was one.
    pub async fn revoke_connection(&self) -> Result<bool> {
        let revoked: ConnectionRevoked = self
            .send_with_retry(ApiCall::delete(CONNECTION_PATH))
            .await?
            .into_data()?
            .0;
        Ok(revoked.revoked)
    }
}

/// The connection string as saved locally: the hub knows only its hash, so a lost one must be replaced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedConnection {
    agent_id: String,
    hub_url: String,
    pub connection_string: Secret,
}

impl SavedConnection {
    pub fn for_agent(credentials: &AgentCredentials, connection_string: Secret) -> Self {
        Self {
            agent_id: credentials.agent_id.clone(),
            hub_url: credentials.hub_url.clone(),
            connection_string,
        }
    }

    fn file_path(files: &IdentityFiles) -> PathBuf {
        let state = files
            .state
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        files
            .state
            .with_file_name(state.replace("state.json", "connection.json"))
    }

    /// The saved connection, unless it belongs to another identity.
    pub fn read_for(files: &IdentityFiles, credentials: &AgentCredentials) -> Result<Option<Self>> {
        let path = Self::file_path(files);
        let Some(text) = read_small_file(&path)? else {
            return Ok(None);
        };
        let saved: Self = serde_json::from_str(&text)
            .map_err(|e| Error::file_error(&path, format!("{e}; remove it to start afresh")))?;
        Ok(Some(saved).filter(|saved| {
            saved.agent_id == credentials.agent_id && saved.hub_url == credentials.hub_url
        }))
    }

    pub fn save(&self, files: &IdentityFiles) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|e| Error::Input(e.to_string()))?;
        atomic_file::replace_file(&Self::file_path(files), text.as_bytes())
    }

    pub fn remove_file(files: &IdentityFiles) -> Result<()> {
        let path = Self::file_path(files);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file_error(path, e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
