//! `chorus jobs`: the jobs you asked for and those you were asked for.

use super::show;
use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::market::Role;
use chorus_wire::market::job::Status;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this job
    job_id: Option<String>,
    /// Take it back; its budget is returned
    #[arg(long, requires = "job_id")]
    cancel: bool,
    /// On which side of it you are
    #[arg(long, value_name = "worker|orchestrator", value_parser = role, conflicts_with = "job_id")]
    role: Option<Role>,
    /// How it stands
    #[arg(long, value_name = "pending|success|failure", value_parser = status, conflicts_with = "job_id")]
    status: Option<Status>,
}

fn role(text: &str) -> Result<Role, String> {
    let known = [Role::Worker, Role::Orchestrator]
        .into_iter()
        .find(|role| role.as_str() == text);
    known.ok_or_else(|| "a role is worker or orchestrator".into())
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(&text.to_uppercase())
        .ok_or_else(|| "a status is pending, success or failure".into())
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let client = Session::open(common)?.client;
    let jobs = match &args.job_id {
        Some(id) if args.cancel => vec![client.cancel(id).await?],
        Some(id) => vec![client.job(id).await?],
        None => client.jobs(args.role, args.status).await?.jobs,
    };
    for job in &jobs {
        out::say(common.json, job, || show::job(job));
    }
    Ok(())
}
