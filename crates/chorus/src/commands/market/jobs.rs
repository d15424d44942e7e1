//! `chorus jobs`: lists and shows the agent's jobs, and acts on one.

use super::{format_job, job_command, read_input};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output, table};
use chorus_client::HubClient;
use chorus_client::market::JobRole;
use chorus_wire::market::job::{Job, JobStatus};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  chorus jobs --role worker --status pending     # what waits for you
  chorus jobs JOB_ID                             # one job with its timeline and its output
  chorus jobs JOB_ID --progress 'half of it'     # as its worker
  chorus jobs JOB_ID --answer 'into French'      # as its requester")]
pub struct Args {
    /// Only this job
    job_id: Option<String>,
    #[command(flatten)]
    act: JobActs,
    /// Only jobs in which you have this role
    #[arg(long, value_name = "worker|orchestrator", value_parser = parse_role, conflicts_with = "job_id")]
    role: Option<JobRole>,
    /// Only jobs with this status
    #[arg(long, value_name = "pending|success|failure", value_parser = parse_status, conflicts_with = "job_id")]
    status: Option<JobStatus>,
}

/// What to do with the job; at most one.
#[derive(Debug, clap::Args)]
#[group(multiple = false, requires = "job_id")]
struct JobActs {
    /// Cancel it; its budget is returned
    #[arg(long)]
    cancel: bool,
    /// Answer its worker's question
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// Approve its delivery, and pay
    #[arg(long)]
    approve: bool,
    /// Reject its delivery; its budget is returned
    #[arg(long, value_name = "REASON")]
    reject: Option<String>,
    /// As its worker: report the output as JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    done: Option<String>,
    /// As its worker: report that it failed
    #[arg(long, value_name = "REASON")]
    fail: Option<String>,
    /// As its worker: do not do it; your score stays
    #[arg(long, value_name = "REASON")]
    decline: Option<String>,
    /// As its worker: say how far you are
    #[arg(long, value_name = "TEXT")]
    progress: Option<String>,
    /// As its worker: ask its requester one question
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
}

impl JobActs {
    /// The report of a worker.
    fn report(&self) -> Result<Option<Value>, Fail> {
        if let Some(output) = &self.done {
            let output = read_input::read_input(output)?;
            return Ok(Some(json!({"status": "SUCCESS", "output_data": output})));
        }
        let failure = |code: &str, reason: &String| json!({"status": "FAILURE", "error_code": code, "error_message": reason});
        let fail = self.fail.as_ref();
        let decline = self.decline.as_ref();
        let progress = self.progress.as_ref();
        let ask = self.ask.as_ref();
        Ok(fail
            .map(|reason| failure("EXECUTION_ERROR", reason))
            .or_else(|| decline.map(|reason| failure(job_command::DECLINED, reason)))
            .or_else(|| progress.map(|text| json!({"status": "PENDING", "progress": text})))
            .or_else(|| ask.map(|text| json!({"status": "PENDING", "question": text}))))
    }

    async fn apply(&self, client: &HubClient, id: &str) -> Result<Job, Fail> {
        if let Some(report) = self.report()? {
            return Ok(client.deliver_result(id, &report).await?);
        }
        Ok(match (self.cancel, self.approve) {
            (true, _) => client.cancel_job(id).await?,
            (false, true) => client.approve_job(id).await?,
            (false, false) => match (&self.answer, &self.reject) {
                (Some(answer), _) => client.answer_job(id, answer).await?,
                (None, Some(reason)) => client.reject_job(id, Some(reason)).await?,
                (None, None) => client.fetch_job(id).await?,
            },
        })
    }
}

fn parse_role(text: &str) -> Result<JobRole, String> {
    let found = [JobRole::Worker, JobRole::Orchestrator]
        .into_iter()
        .find(|role| role.as_str() == text);
    found.ok_or_else(|| "a role is worker or orchestrator".into())
}

pub fn parse_status(text: &str) -> Result<JobStatus, String> {
    JobStatus::parse(&text.to_uppercase())
        .ok_or_else(|| "a status is pending, success or failure".into())
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let client = command.client;
    let agent_id = command.credentials.agent_id;
    if let Some(id) = &args.job_id {
        let job = args.act.apply(&client, id).await?;
        output::print_result(common.json, &job, || {
            format_job::format_job_details(&job, &agent_id)
        });
        return Ok(());
    }
    let jobs = client.list_jobs(args.role, args.status).await?.jobs;
    let empty = "no jobs; chorus hire SKILL --budget CREDITS requests one";
    table::print_table(common.json, &jobs, format_job::JOB_TITLES, empty, |job| {
        format_job::job_row_for(job, &agent_id)
    });
    Ok(())
}
