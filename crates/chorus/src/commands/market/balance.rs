//! `chorus balance`: prints the owner's credits and the credits held for jobs.

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Another owner than yours, for a key that may see it
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let account = match &args.owner {
        Some(owner) => session.client.fetch_account(owner).await?,
        None => session.client.fetch_own_account().await?,
    };
    output::print_result(common.json, &account, || {
        format!("{}  {} held", account.balance, account.held)
    });
    Ok(())
}
