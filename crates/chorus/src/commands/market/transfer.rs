//! `chorus transfer`: pay another owner.

use super::read;
use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::market::new_id;
use chorus_wire::market::credits::Credits;
use chorus_wire::market::transfer::Transfer;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The owner to pay
    to: String,
    #[arg(value_parser = read::amount)]
    amount: Credits,
    /// The owner that pays; otherwise yourself
    #[arg(long, value_name = "OWNER")]
    from: Option<String>,
    /// The job it is for
    #[arg(long, value_name = "JOB_ID")]
    job: Option<String>,
    /// Its id: a transfer with the same id is made once; otherwise a new one
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let transfer = Transfer {
        transfer_id: args.id.unwrap_or_else(new_id),
        from_owner: args.from.unwrap_or_else(|| session.who.agent_id.clone()),
        to_owner: args.to,
        amount: args.amount,
        job_id: args.job,
        timestamp_utc: None,
    };
    let done = session.client.transfer(&transfer).await?;
    out::say(common.json, &done, || {
        let (to, left) = (out::harmless(&done.transfer.to_owner), done.sender_balance);
        format!("paid {} to {to}, {left} left", done.transfer.amount)
    });
    Ok(())
}
