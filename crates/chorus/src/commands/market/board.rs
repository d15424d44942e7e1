//! `chorus board`: lists the jobs that can be claimed, and claims one.

use super::format_job;
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
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
    let header = "STATUS   SKILL  WITH  CREDITS  JOB";
    let empty = "the board is empty";
    output::print_list(common.json, &jobs, header, empty, format_open_job);
    Ok(())
}

/// The job, its requester and its input.
fn format_open_job(job: &Job) -> String {
    let mut text = format_job::format_job(job);
    text.push_str(&format!(
        "\n    for {}, until {}",
        output::escape_controls(&job.orchestrator_id),
        crate::local_time::date_time(&job.deadline_utc.to_string())
    ));
    if job.approve_within_ms.is_some() {
        text.push_str(", paid after approval");
    }
    if let Some(input) = &job.input_data {
        text.push_str(&format!("\n    {input}"));
    }
    text
}
