//! `chorus board`: lists the jobs that can be claimed, and claims one.

use super::format_job;
use crate::table::{self, TableRow};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail};
use chorus_wire::market::job::Job;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  chorus hire translate --board --budget 0.20 --input '{\"text\": \"hallo\"}'   # put a job on the board
  chorus board --skill translate                                           # see what is there
  chorus board JOB_ID --claim                                              # take it
  chorus jobs JOB_ID --done '{\"text\": \"hello\"}'                          # deliver
  chorus offer translate --cost 0.10 --board -- ./translate.sh             # claim and do them all")]
pub struct Args {
    /// Only this job
    job_id: Option<String>,
    /// Claim it: you must offer its skill
    #[arg(long, requires = "job_id")]
    claim: bool,
    /// Only jobs for this skill
    #[arg(long, value_name = "NAME", conflicts_with = "job_id")]
    skill: Option<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let client = CommandClient::open(common)?.client;
    let jobs = match &args.job_id {
        Some(id) if args.claim => vec![client.claim_job(id).await?],
        Some(id) => vec![client.fetch_job(id).await?],
        None => client.list_board(args.skill.as_deref()).await?.jobs,
    };
    let empty = match &args.skill {
        Some(_) => "no job for this skill is on the board; chorus board lists all",
        None => "the board is empty; chorus hire SKILL --board --budget CREDITS puts a job on it",
    };
    table::print_table(
        common.json,
        &jobs,
        format_job::JOB_TITLES,
        empty,
        open_job_row,
    );
    Ok(())
}

/// The job, its requester and its input.
fn open_job_row(job: &Job) -> TableRow<5> {
    let mut row = format_job::job_row(job);
    let approval = match job.approve_within_ms {
        Some(_) => ", paid after approval",
        None => "",
    };
    row.add_line(&format!(
        "for {}, until {}{approval}",
        job.orchestrator_id,
        crate::local_time::date_time(&job.deadline_utc.to_string())
    ));
    if let Some(input) = &job.input_data {
        row.add_line(&input.to_string());
    }
    row
}
