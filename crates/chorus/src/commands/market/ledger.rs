//! `chorus ledger`: every movement of your credits.

use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_wire::market::transfer::Posting;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only what belongs to this job
    #[arg(long, value_name = "JOB_ID")]
    job: Option<String>,
    /// The owner you registered under; otherwise yourself
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// At most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let owner = args.owner.as_deref().unwrap_or(&session.who.agent_id);
    let audit = session
        .client
        .audit(owner, args.job.as_deref(), args.limit)
        .await?;
    for posting in &audit.postings {
        out::say(common.json, posting, || human(posting));
    }
    Ok(())
}

fn human(posting: &Posting) -> String {
    let side = |entry: &chorus_wire::market::transfer::PostingEntry| {
        let whose = entry
            .owner_id
            .as_deref()
            .map(|owner| format!(" {}", out::harmless(owner)))
            .unwrap_or_default();
        format!("{}{whose}", entry.account)
    };
    let [one, other] = &posting.entries;
    let (from, to) = if one.amount < other.amount {
        (one, other)
    } else {
        (other, one)
    };
    let at = out::seconds(&posting.timestamp_utc.to_string());
    let job = posting
        .job_id
        .as_deref()
        .map(|job| format!("  {}", out::harmless(job)))
        .unwrap_or_default();
    format!(
        "{at}  {:8}  {}  {} → {}{job}",
        posting.kind,
        posting.amount,
        side(from),
        side(to)
    )
}
