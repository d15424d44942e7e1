//! `chorus confirm`: lets the hosts of this user act as the identity in a workspace.

use crate::confirmed_workspaces::ConfirmedWorkspaces;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::files::{AgentCredentials, IdentityFiles, WORKSPACE_FILE};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with chorus-credentials.json
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Take the confirmation back
    #[arg(long)]
    remove: bool,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let folder = std::fs::canonicalize(&args.folder)
        .map_err(|e| chorus_client::Error::file_error(&args.folder, e))?;
    if args.remove {
        let is_removed = ConfirmedWorkspaces::read_list()?.remove_folder(&folder)?;
        let output = json!({ "workspace": folder, "removed": is_removed });
        output::print_result(common.json, &output, || match is_removed {
            true => format!("{} is no longer confirmed", folder.display()),
            false => format!("{} was not confirmed", folder.display()),
        });
        return Ok(());
    }
    let credentials = confirm_folder(&folder)?;
    let output = json!({ "workspace": folder, "agent_id": credentials.agent_id, "hub_url": credentials.hub_url });
    output::print_result(common.json, &output, || {
        format!(
            "in {} your hosts are now {} at {}",
            folder.display(),
            credentials.agent_id,
            credentials.hub_url
        )
    });
    Ok(())
}

/// Confirms the credential file of a folder, and returns the identity in it.
pub fn confirm_folder(folder: &Path) -> Result<AgentCredentials, Fail> {
    let file = folder.join(WORKSPACE_FILE);
    let files = IdentityFiles::beside_credentials(file.clone());
    let credentials = AgentCredentials::read_from(&files)?
        .ok_or_else(|| Fail::usage_error(format!("there is no identity in {}", file.display())))?;
    ConfirmedWorkspaces::read_list()?.add_file(&file)?;
    Ok(credentials)
}
