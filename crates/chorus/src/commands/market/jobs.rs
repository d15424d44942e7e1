//! `chorus jobs`: lists, shows or cancels the agent's jobs.

use super::format_job;
use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use chorus_client::market::JobRole;
use chorus_wire::market::job::JobStatus;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this job
    job_id: Option<String>,
    /// Cancel it; its budget is returned
    #[arg(long, requires = "job_id")]
    cancel: bool,
    /// Only jobs in which you have this role
    #[arg(long, value_name = "worker|orchestrator", value_parser = parse_role, conflicts_with = "job_id")]
    role: Option<JobRole>,
    /// Only jobs with this status
    #[arg(long, value_name = "pending|success|failure", value_parser = parse_status, conflicts_with = "job_id")]
    status: Option<JobStatus>,
}

fn parse_role(text: &str) -> Result<JobRole, String> {
    let found = [JobRole::Worker, JobRole::Orchestrator]
        .into_iter()
        .find(|role| role.as_str() == text);
    found.ok_or_else(|| "a role is worker or orchestrator".into())
}

fn parse_status(text: &str) -> Result<JobStatus, String> {
    JobStatus::parse(&text.to_uppercase())
        .ok_or_else(|| "a status is pending, success or failure".into())
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let client = ClientSession::open(common)?.client;
    let jobs = match &args.job_id {
        Some(id) if args.cancel => vec![client.cancel_job(id).await?],
        Some(id) => vec![client.fetch_job(id).await?],
        None => client.list_jobs(args.role, args.status).await?.jobs,
    };
    for job in &jobs {
        output::print_result(common.json, job, || format_job::format_job(job));
    }
    Ok(())
}
