//! `chorus balance`: prints the owner's credits and the credits held for jobs.

use crate::agent_names;
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Another owner than yours, for a key that may see it
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let account = match &args.owner {
        Some(owner) => match command.client.fetch_account(owner).await {
            // Another spelling of the name of an agent that owns itself.
            Err(error) if is_hidden(&error) && !owner.contains('@') => {
                let owner = agent_names::resolve_agent(&command.client, owner).await?;
                command.client.fetch_account(&owner).await?
            }
            account => account?,
        },
        None => command.client.fetch_own_account().await?,
    };
    output::print_result(common.json, &account, || {
        format!("{}  {} held", account.balance, account.held)
    });
    Ok(())
}

/// An account that does not exist and one of another owner look the same to a stranger.
pub(super) fn is_hidden(error: &chorus_client::Error) -> bool {
    error
        .error_response()
        .is_some_and(|refusal| matches!(refusal.status, 403 | 404))
}
