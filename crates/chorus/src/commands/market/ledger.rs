//! `chorus ledger`: prints the owner's postings.

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_wire::market::transfer::LedgerPosting;

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
    let audit = command
        .client
        .fetch_audit(args.owner.as_deref(), args.job.as_deref(), args.limit)
        .await?;
    let header = "TIME  KIND  CREDITS  FROM → TO  JOB";
    let empty = "no postings";
    output::print_list(common.json, &audit.postings, header, empty, format_posting);
    Ok(())
}

fn format_posting(posting: &LedgerPosting) -> String {
    let format_account = |entry: &chorus_wire::market::transfer::PostingLeg| {
        let owner = entry
            .owner_id
            .as_deref()
            .map(|owner| format!(" {}", output::escape_controls(owner)))
            .unwrap_or_default();
        format!("{}{owner}", entry.account)
    };
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
        "{at}  {:8}  {}  {} → {}{job}",
        posting.kind,
        posting.amount,
        format_account(from),
        format_account(to)
    )
}
