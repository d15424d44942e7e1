//! `chorus balance`: what you have, and what is held for your jobs.

use crate::{cli::Common, fail::Fail, out, session::Session};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The owner you registered under; otherwise yourself
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let account = session
        .client
        .account(args.owner.as_deref().unwrap_or(&session.who.agent_id))
        .await?;
    out::say(common.json, &account, || {
        format!("{}  {} held", account.balance, account.held)
    });
    Ok(())
}
