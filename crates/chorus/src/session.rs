//! Who is speaking, and to which hub: found the same way by every command.

use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::HubClient;
use chorus_client::files::{AgentCredentials, IdentityFiles, InboxState};
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};

pub struct ClientSession {
    pub files: IdentityFiles,
    pub credentials: AgentCredentials,
    pub client: HubClient,
}

impl ClientSession {
    /// The saved identity, or exit code 2.
    pub fn open(common: &CommonArgs) -> Result<Self, Fail> {
        let files = identity_files(common)?;
        let credentials = AgentCredentials::read_from(&files)?.ok_or_else(Fail::not_registered)?;
        let hub = common.hub.as_deref().unwrap_or(&credentials.hub_url);
        let client = HubClient::new(hub, Some(credentials.api_key.clone()))?;
        Ok(Self {
            files,
            credentials,
            client,
        })
    }

    pub fn read_state(&self) -> Result<InboxState, Fail> {
        Ok(InboxState::read_for(&self.files, &self.credentials)?)
    }
}

/// Where this agent's files are. Paths stay as they were given: the working directory never changes, and a person knows
/// `alice/config.json` better than what it is short for.
pub fn identity_files(common: &CommonArgs) -> Result<IdentityFiles, Fail> {
    Ok(IdentityFiles::locate(
        common.credentials.as_deref(),
        Path::new(""),
        &home_folder()?,
    ))
}

/// `$CHORUS_HOME` or `~/.chorus`.
pub fn home_folder() -> Result<PathBuf, Fail> {
    if let Some(home) = std::env::var_os("CHORUS_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    let home =
        etcetera::home_dir().map_err(|e| Fail::usage_error(format!("no home directory: {e}")))?;
    Ok(home.join(".chorus"))
}

/// A hub to talk to without an identity: the one named, else the one of the credentials. There is no built-in hub.
pub fn open_client(common: &CommonArgs, key: Option<Secret>) -> Result<HubClient, Fail> {
    let saved = match &common.hub {
        Some(_) => None,
        None => AgentCredentials::read_from(&identity_files(common)?)?
            .map(|credentials| credentials.hub_url),
    };
    let url = common.hub.clone().or(saved);
    let url =
        url.ok_or_else(|| Fail::usage_error("which hub? pass --hub URL or set CHORUS_HUB"))?;
    Ok(HubClient::new(&url, key)?)
}
