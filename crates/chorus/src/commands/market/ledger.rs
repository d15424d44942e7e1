//! `chorus ledger`: prints the owner's postings.

use super::balance::is_hidden;
use crate::{agent_names, cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
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
    let amounts: Vec<String> = audit.postings.iter().map(format_amount).collect();
    let width = output::column_width("CREDITS", amounts.iter().map(String::as_str));
    // The time as wide as a terminal prints it: the header is for terminals only.
    let header = format!(
        "{:19}  {:12}  {:width$}  FROM → TO  JOB",
        "TIME", "KIND", "CREDITS"
    );
    let empty = "no postings";
    output::print_list(common.json, &audit.postings, &header, empty, |posting| {
        format_posting(posting, width)
    });
    Ok(())
}

fn format_amount(posting: &LedgerPosting) -> String {
    posting.amount.to_string()
}

fn format_posting(posting: &LedgerPosting, width: usize) -> String {
    let [first, second] = &posting.entries;
    let (from, to) = if first.amount < second.amount {
        (first, second)
    } else {
        (second, first)
    };
    let at = crate::local_time::date_time(&posting.timestamp_utc.to_string());
    let job = posting
        .job_id
        .as_deref()
        .map(|job| format!("  {}", output::escape_controls(job)))
        .unwrap_or_default();
    format!(
        "{at}  {:12}  {:width$}  {} → {}{job}",
        describe_kind(&posting.kind),
        format_amount(posting),
        format_account(from),
        format_account(to)
    )
}

/// What a posting did, in the words of the console. A kind that this client does not know is printed as it is.
fn describe_kind(kind: &str) -> String {
    let words = match kind {
        "grant" => "granted",
        "issue" => "issued",
        "transfer" => "transferred",
        "hold" => "held",
        "pay" => "paid",
        "release" => "given back",
        "opening" => "carried over",
        other => return output::escape_controls(other),
    };
    words.to_owned()
}

/// An account by its owner. New credits come from the hub, and a hold keeps its owner's credits for a job.
fn format_account(leg: &PostingLeg) -> String {
    let owner = leg.owner_id.as_deref().map(output::escape_controls);
    match (leg.account.as_str(), owner) {
        ("owner", Some(owner)) => owner,
        ("hold", Some(owner)) => format!("held for {owner}"),
        ("issue", _) => "the hub".to_owned(),
        (account, owner) => {
            let account = output::escape_controls(account);
            owner.map_or(account.clone(), |owner| format!("{account} {owner}"))
        }
    }
}
