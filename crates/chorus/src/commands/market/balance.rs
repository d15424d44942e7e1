//! `chorus balance`: prints the owner's credits and the credits held for jobs.

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The owner you registered under; default: yourself
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let account = session
        .client
        .fetch_account(
            args.owner
                .as_deref()
                .unwrap_or(&session.credentials.agent_id),
        )
        .await?;
    output::print_result(common.json, &account, || {
        format!("{}  {} held", account.balance, account.held)
    });
    Ok(())
}
