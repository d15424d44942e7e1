//! `chorus ledger`: prints the owner's postings.

use super::balance::is_hidden;
use crate::table::{self, TableCell, TableRow};
use crate::{agent_names, cli::CommonArgs, command_client::CommandClient, fail::Fail};
use chorus_wire::market::transfer::{LedgerPosting, PostingLeg};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only postings of this job
    #[arg(long, value_name = "JOB_ID")]
    job: Option<String>,
    /// Another owner than yours, for a key that may see it
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// At most this many, the latest ones
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let client = &command.client;
    let job = args.job.as_deref();
    let owner = args.owner.as_deref();
    let audit = match (owner, client.fetch_audit(owner, job, args.limit).await) {
        // Another spelling of the name of an agent that owns itself.
        (Some(owner), Err(error)) if is_hidden(&error) && !owner.contains('@') => {
            let owner = agent_names::resolve_agent(client, owner).await?;
            client.fetch_audit(Some(&owner), job, args.limit).await?
        }
        (_, audit) => audit?,
    };
    let titles = ["TIME", "KIND", "CREDITS", "FROM → TO", "JOB"];
    let empty = "no postings; credits move when an agent is hired or paid: chorus balance";
    table::print_table(common.json, &audit.postings, titles, empty, posting_row);
    Ok(())
}

fn posting_row(posting: &LedgerPosting) -> TableRow<5> {
    let [first, second] = &posting.entries;
    let (from, to) = if first.amount < second.amount {
        (first, second)
    } else {
        (second, first)
    };
    let at = crate::local_time::date_time(&posting.timestamp_utc.to_string());
    TableRow::of_cells([
        TableCell::from(at),
        TableCell::from(describe_kind(&posting.kind)),
        TableCell::from(posting.amount.to_string()),
        TableCell::from(format!("{} → {}", format_account(from), format_account(to))),
        TableCell::from(posting.job_id.as_deref().unwrap_or_default()),
    ])
}

/// What a posting did, in the words of the console. A kind that this client does not know is printed as it is.
fn describe_kind(kind: &str) -> &str {
    match kind {
        "grant" => "granted",
        "issue" => "issued",
        "transfer" => "transferred",
        "hold" => "held",
        "pay" => "paid",
        "release" => "given back",
        "opening" => "carried over",
        other => other,
    }
}

/// An account by its owner. New credits come from the hub, and a hold keeps its owner's credits for a job.
fn format_account(leg: &PostingLeg) -> String {
    match (leg.account.as_str(), &leg.owner_id) {
        ("owner", Some(owner)) => owner.clone(),
        ("hold", Some(owner)) => format!("held for {owner}"),
        ("issue", _) => "the hub".to_owned(),
        (account, Some(owner)) => format!("{account} {owner}"),
        (account, None) => account.to_owned(),
    }
}
