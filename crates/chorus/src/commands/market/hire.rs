//! `chorus hire`: ask for a job, and with `--wait` stay for its result.

use super::{format_job, job_waiter, read_input};
use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use chorus_client::market::JobRequest;
use chorus_wire::market::credits::Credits;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is to be done
    skill: String,
    /// The input as JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// The most that it may cost; it is held until there is a result
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_amount)]
    budget: Credits,
    /// Who shall do it; otherwise the best within the budget
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How long it may take; 10 minutes unless said
    #[arg(long, value_name = "TIME", value_parser = crate::commands::duration::parse_duration)]
    deadline: Option<Duration>,
    /// Wait for the result, and print its output
    #[arg(long)]
    wait: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut request = JobRequest::new(
        &args.skill,
        read_input::read_input(&args.input)?,
        args.budget,
    )
    .with_deadline(args.deadline);
    request.agent_id = args.agent;
    let session = ClientSession::open(common)?;
    if !args.wait {
        let job = session.client.request_job(&request).await?;
        output::print_result(common.json, &job, || format_job::format_job(&job));
        return Ok(());
    }
    let job = job_waiter::JobWaiter::open(&session.client)
        .await?
        .request_and_wait(&request)
        .await?;
    job_waiter::check_success(&job)?;
    // What was asked for is the output; with --json it is the whole result.
    output::print_result(common.json, &job, || job.output_data.to_string());
    Ok(())
}
