//! `chorus hire`: ask for a job, and with `--wait` stay for its result.

use super::{read, show, wait};
use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::market::Hire;
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
    #[arg(long, value_name = "CREDITS", value_parser = read::amount)]
    budget: Credits,
    /// Who shall do it; otherwise the best within the budget
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How long it may take; 10 minutes unless said
    #[arg(long, value_name = "TIME", value_parser = crate::commands::span::parse)]
    deadline: Option<Duration>,
    /// Wait for the result, and print its output
    #[arg(long)]
    wait: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let mut hire =
        Hire::new(&args.skill, read::input(&args.input)?, args.budget).within(args.deadline);
    hire.agent_id = args.agent;
    let session = Session::open(common)?;
    if !args.wait {
        let job = session.client.hire(&hire).await?;
        out::say(common.json, &job, || show::job(&job));
        return Ok(());
    }
    let job = wait::Ear::open(&session.client)
        .await?
        .result(&hire)
        .await?;
    wait::succeeded(&job)?;
    // What was asked for is the output; with --json it is the whole result.
    out::say(common.json, &job, || job.output_data.to_string());
    Ok(())
}
