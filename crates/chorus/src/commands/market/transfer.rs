//! `chorus transfer`: pays credits to another owner.

use super::read_input;
use crate::agent_names::{self, is_not_found};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::market::random_id;
use chorus_wire::credits::Credits;
use chorus_wire::market::transfer::CreditTransfer;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The owner to pay, or an agent that owns itself
    to: String,
    #[arg(value_parser = read_input::parse_amount)]
    amount: Credits,
    /// The owner that pays; default: yours
    #[arg(long, value_name = "OWNER")]
    from: Option<String>,
    /// The job it is for
    #[arg(long, value_name = "JOB_ID")]
    job: Option<String>,
    /// Its id: a transfer with the same id is made once; default: a new id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let from_owner = match args.from {
        Some(owner) => owner,
        None => command.client.fetch_usage().await?.owner_id,
    };
    agent_names::check_expanded(&args.to)?;
    let mut transfer = CreditTransfer {
        transfer_id: args.id.unwrap_or_else(random_id),
        from_owner,
        to_owner: args.to.clone(),
        amount: args.amount,
        job_id: args.job,
        timestamp_utc: None,
    };
    check_other_owner(&transfer)?;
    let transferred = match command.client.transfer_credits(&transfer).await {
        // No owner of that name: it may be another spelling of an agent's name.
        Err(error) if is_not_found(&error) => {
            transfer.to_owner = agent_names::resolve_agent(&command.client, &args.to).await?;
            check_other_owner(&transfer)?;
            command.client.transfer_credits(&transfer).await
        }
        transferred => transferred,
    };
    let transferred = transferred.map_err(|error| match is_not_found(&error) {
        true => Fail::from(error).with_message(format!("no owner is called {}", args.to)),
        false => Fail::from(error),
    })?;
    output::print_result(common.json, &transferred, || {
        let to = output::escape_controls(&transferred.transfer.to_owner);
        let left = transferred.sender_balance;
        format!("paid {} to {to}, {left} left", transferred.transfer.amount)
    });
    Ok(())
}

/// Says in words what the hub says with the names of its fields.
fn check_other_owner(transfer: &CreditTransfer) -> Result<(), Fail> {
    match transfer.to_owner == transfer.from_owner {
        true => Err(Fail::usage_error(
            "a payment to yourself changes nothing; name another owner or agent",
        )),
        false => Ok(()),
    }
}
