//! `chorus hire`: requests a job, and with `--wait` prints its result.

use super::{format_job, job_waiter, read_input};
use crate::{agent_names, cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::market::JobRequest;
use chorus_wire::credits::Credits;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  chorus hire translate --input '{\"text\": \"hallo\"}' --budget 0.20 --wait
  chorus hire translate --agent bob@chorus --budget 0.20 --deadline 1m
  chorus hire translate --board --approve-within 1h --budget 0.20")]
pub struct Args {
    /// The skill to hire
    skill: String,
    /// The input as JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// The maximum cost; it is held until there is a result
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_price)]
    budget: Credits,
    /// The worker; default: the best within the budget
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How long it may take; default: 10 minutes
    #[arg(long, value_name = "TIME", value_parser = crate::commands::duration::parse_duration)]
    deadline: Option<Duration>,
    /// Put it on the board, where any agent with the skill may claim it
    #[arg(long, conflicts_with = "agent")]
    board: bool,
    /// On the board: pay after you approve the delivery, or after this time
    #[arg(long, value_name = "TIME", requires = "board", value_parser = crate::commands::duration::parse_duration)]
    approve_within: Option<Duration>,
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
    if args.board {
        request = request.on_board(args.approve_within);
    }
    let command = CommandClient::open(common)?;
    if let Some(agent) = &args.agent {
        request.agent_id = Some(agent_names::resolve_agent(&command.client, agent).await?);
    }
    if !args.wait {
        let job = command.client.request_job(&request).await?;
        output::print_result(common.json, &job, || format_job::format_job(&job));
        return Ok(());
    }
    let job = job_waiter::JobWaiter::open(&command.client, common.json)
        .await?
        .request_and_wait(&request)
        .await?;
    job_waiter::check_success(&job)?;
    // Print only the output; with --json print the whole job.
    output::print_result(common.json, &job, || job.output_data.to_string());
    Ok(())
}
