//! Finds the credentials and the hub of a command, in the same way for every command.

use crate::agent_names::local_part;
use crate::confirmed_workspaces::ConfirmedWorkspaces;
use crate::hub_origin::is_same_hub;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::HubClient;
use chorus_client::files::{
    AgentCredentials, HOME_FILE, IdentityFiles, InboxState, WORKSPACE_FILE,
};
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};

pub struct CommandClient {
    pub files: IdentityFiles,
    pub credentials: AgentCredentials,
    pub client: HubClient,
}

impl CommandClient {
    /// Opens the saved identity; without one the exit code is 2. Its key is sent only to the hub that issued it.
    pub fn open(common: &CommonArgs) -> Result<Self, Fail> {
        let files = identity_files(common)?;
        let credentials = AgentCredentials::read_from(&files)?
            .ok_or_else(|| Fail::not_registered(&files.credentials))?;
        let hub = common.hub.as_deref().unwrap_or(&credentials.hub_url);
        let client = HubClient::new(hub, Some(credentials.api_key.clone()))?;
        check_issuer(&files, &credentials, client.base_url())?;
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

/// Refuses to send a key to another hub than the one that issued it.
fn check_issuer(
    files: &IdentityFiles,
    credentials: &AgentCredentials,
    named: &str,
) -> Result<(), Fail> {
    let issuer = &credentials.hub_url;
    if is_same_hub(issuer, named) {
        return Ok(());
    }
    let agent = &credentials.agent_id;
    let file = files.credentials.display();
    let name = local_part(agent);
    Err(Fail::usage_error(format!(
        "{agent} in {file} is of the hub {issuer}, so its key is not sent to {named}, which --hub or CHORUS_HUB names. To have an \
         identity there: CHORUS_HOME=FOLDER chorus register {name} --hub {named}; to use one that you have: --credentials FILE. \
         If it is the same hub at a new address, write that into hub_url of the file"
    )))
}

/// The paths of this agent's files. They stay as given, because the user recognises `alice/config.json` better than an
/// absolute path, and the working directory never changes.
pub fn identity_files(common: &CommonArgs) -> Result<IdentityFiles, Fail> {
    Ok(IdentityFiles::locate(
        common.credentials.as_deref(),
        Path::new(""),
        &home_folder()?,
    ))
}

/// The options for a process that a host starts: the credential file is named, and it is the one of the workspace
/// only if the user confirmed it or has no identity of their own.
pub fn pin_credentials(common: &CommonArgs) -> Result<CommonArgs, Fail> {
    if common.credentials.is_some() {
        return Ok(common.clone());
    }
    let own = IdentityFiles::beside_credentials(home_folder()?.join(HOME_FILE));
    let in_workspace = Path::new(WORKSPACE_FILE);
    let is_workspace = in_workspace.exists()
        && (ConfirmedWorkspaces::read_list()?.has_file(in_workspace)
            || AgentCredentials::read_from(&own)?.is_none());
    if in_workspace.exists() && !is_workspace {
        tracing::warn!(
            "{WORKSPACE_FILE} in this folder is not used, because you have not confirmed it; to use it run: chorus confirm"
        );
    }
    let chosen = match is_workspace {
        true => in_workspace.to_owned(),
        false => own.credentials,
    };
    Ok(CommonArgs {
        credentials: Some(chosen),
        ..common.clone()
    })
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

/// A client without an identity: of the hub in `--hub`, else of the one in the credentials. There is no built-in hub
///
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

/// A client for routes that most hubs answer without a key. The saved key goes along, because some hubs want one, but
/// only to the hub that issued it.
pub fn open_directory_client(common: &CommonArgs) -> Result<HubClient, Fail> {
    let saved = AgentCredentials::read_from(&identity_files(common)?)?;
    let is_issuer = |hub: &String| {
        common
            .hub
            .as_ref()
            .is_none_or(|named| is_same_hub(hub, named))
    };
    let key = saved
        .filter(|credentials| is_issuer(&credentials.hub_url))
        .map(|credentials| credentials.api_key);
    open_client(common, key)
}
