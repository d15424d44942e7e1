//! `chorus offer`: offers a skill and runs a command for every job.

use super::job_command::{self, ErrorSharing};
use super::read_input;
use crate::stop_signal::StopSignal;
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::event_stream::StreamEvent;
use chorus_client::market::PendingJob;
use chorus_wire::credits::Credits;
use chorus_wire::market::job::JobStatus;
use chorus_wire::market::skill::SkillOffer;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  chorus offer shout --cost 0.10 -- jq '{text: (.text | ascii_upcase)}'
  chorus offer translate --cost 0.10 --input-schema in.json --description 'German to English' -- ./translate.sh
  chorus offer translate --cost 0.10 --board -- ./translate.sh")]
pub struct Args {
    /// The name of the skill
    skill: String,
    /// The price of one job; 0 for free
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_price)]
    cost: Credits,
    /// A description for requesters
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A file with the input schema: JSON Schema, or {"field": "type"}
    #[arg(long, value_name = "FILE")]
    input_schema: Option<String>,
    /// A file with the output schema
    #[arg(long, value_name = "FILE")]
    output_schema: Option<String>,
    /// How many jobs to run at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// How long a job may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::commands::duration::parse_duration)]
    timeout: Duration,
    /// Also claim jobs for the skill on the board
    #[arg(long)]
    board: bool,
    /// Tell the requester the last line that a command which fails wrote to standard error. It may contain secrets of yours
    #[arg(long)]
    share_errors: bool,
    /// Stop after this many jobs
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// The command and its arguments; input JSON on standard input, output JSON on standard output. {"chorus_decline": "why"}
    /// declines an input without losing score, {"chorus_question": "…"} asks the requester
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let stop = StopSignal::watch()?;
    job_command::check_command(&args.command).map_err(Fail::usage_error)?;
    let skill = SkillOffer {
        skill_name: args.skill.clone(),
        description: args.description.clone(),
        cost_per_call: args.cost,
        input_schema: read_schema(args.input_schema.as_deref())?,
        output_schema: read_schema(args.output_schema.as_deref())?,
    };
    let command_client = CommandClient::open(common)?;
    command_client.client.publish_skill(&skill).await?;
    let remaining = args.count.unwrap_or(u64::MAX);
    let mut worker = SkillWorker {
        common,
        args: &args,
        command_client: &command_client,
        queue: VecDeque::new(),
        known_jobs: HashSet::new(),
        tasks: JoinSet::new(),
        abort_handles: HashMap::new(),
        remaining,
        refused_claims: HashSet::new(),
    };
    let outcome = worker.serve_jobs(stop).await;
    // Withdraw the skill when the worker stops: a job that waits until its deadline costs reputation.
    let withdrawn = command_client.client.withdraw_skill(&args.skill).await;
    outcome.and(withdrawn.map_err(Fail::from))
}

fn read_schema(file: Option<&str>) -> Result<Option<Value>, Fail> {
    file.map(|file| read_input::read_input(&format!("@{file}")))
        .transpose()
}

struct SkillWorker<'a> {
    common: &'a CommonArgs,
    args: &'a Args,
    command_client: &'a CommandClient,
    /// Jobs that wait for a free slot.
    queue: VecDeque<PendingJob>,
    /// Jobs that are queued or running: an event and the list of pending jobs may name the same job.
    known_jobs: HashSet<String>,
    tasks: JoinSet<(PendingJob, Value)>,
    /// Aborts the task of a running job.
    abort_handles: HashMap<String, AbortHandle>,
    /// How many more jobs to do.
    remaining: u64,
    /// Jobs on the board that this worker cannot have.
    refused_claims: HashSet<String>,
}

/// How often the board is read while this worker has nothing to do.
const BOARD_INTERVAL: Duration = Duration::from_secs(2);

impl SkillWorker<'_> {
    async fn serve_jobs(&mut self, mut stop: StopSignal) -> Result<(), Fail> {
        let mut stream = self.command_client.client.open_inbox(None).await;
        let mut stopping = false;
        let mut board_checks = tokio::time::interval(BOARD_INTERVAL);
        while !stopping || !self.tasks.is_empty() {
            tokio::select! {
                event = stream.next() => self.handle_event(event?).await?,
                Some(done) = self.tasks.join_next() => {
                    match done {
                        Ok((job, result)) => self.deliver_result(&job, &result).await?,
                        // The job was cancelled while it ran.
                        Err(error) if error.is_cancelled() => {}
                        Err(error) => tracing::warn!("a job was lost: {error}"),
                    }
                    stopping |= self.remaining == 0;
                }
                _ = board_checks.tick(), if self.args.board && !stopping && self.has_free_slot() => {
                    self.claim_open_job().await?;
                }
                // Running jobs are finished; queued jobs stay pending at the hub.
                () = stop.wait_requested(), if !stopping => stopping = true,
            }
            if !stopping {
                self.start_jobs();
            }
        }
        Ok(())
    }

    async fn handle_event(&mut self, event: StreamEvent) -> Result<(), Fail> {
        match event.name.as_str() {
            // Jobs that came before the stream was open, also before a crash, are still pending.
            "connected" => {
                let waiting = self.command_client.client.list_pending_jobs().await?;
                self.drop_ended_jobs(&waiting).await?;
                for job in waiting {
                    self.enqueue_job(job);
                }
                if !self.common.json {
                    tracing::info!("offering {}", self.args.skill);
                }
            }
            "job" => match serde_json::from_str::<PendingJob>(&event.data) {
                Ok(job) => self.enqueue_job(job),
                Err(e) => tracing::warn!("a job was not understood: {e}"),
            },
            // A worker gets this event when the job was cancelled or has expired.
            "job_result" => {
                let ended: Value = serde_json::from_str(&event.data).unwrap_or_default();
                let is_ended_by_hub =
                    matches!(ended["state"].as_str(), Some("cancelled" | "expired"));
                if let (true, Some(job_id)) = (is_ended_by_hub, ended["job_id"].as_str()) {
                    self.drop_job(job_id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn has_free_slot(&self) -> bool {
        let max_tasks = usize::from(self.args.concurrency);
        self.queue.is_empty()
            && self.tasks.len() < max_tasks
            && (self.tasks.len() as u64) < self.remaining
    }

    /// Claims the oldest job on the board that this worker can have. Another worker may be faster.
    async fn claim_open_job(&mut self) -> Result<(), Fail> {
        let board = self
            .command_client
            .client
            .list_board(Some(&self.args.skill))
            .await?;
        for open in board.jobs {
            if self.refused_claims.contains(&open.job_id) {
                continue;
            }
            match self.command_client.client.claim_job(&open.job_id).await {
                Ok(job) => {
                    self.enqueue_job(PendingJob::from(job));
                    return Ok(());
                }
                Err(e)
                    if e.error_response()
                        .is_some_and(|refusal| (400..500).contains(&refusal.status)) =>
                {
                    tracing::debug!("{} was not claimed: {e}", open.job_id);
                    self.refused_claims.insert(open.job_id);
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Drops jobs that ended while the stream was disconnected.
    async fn drop_ended_jobs(&mut self, waiting: &[PendingJob]) -> Result<(), Fail> {
        let is_gone = |id: &String| !waiting.iter().any(|job| job.job_id == **id);
        for job_id in self
            .abort_handles
            .keys()
            .filter(|id| is_gone(id))
            .cloned()
            .collect::<Vec<_>>()
        {
            if self.command_client.client.fetch_job(&job_id).await?.status != JobStatus::Pending {
                self.drop_job(&job_id);
            }
        }
        Ok(())
    }

    /// Removes a job from the queue, or kills its command.
    fn drop_job(&mut self, job_id: &str) {
        self.queue.retain(|job| job.job_id != job_id);
        self.known_jobs.remove(job_id);
        if let Some(abort_handle) = self.abort_handles.remove(job_id) {
            abort_handle.abort();
            tracing::warn!("{} was cancelled", output::escape_controls(job_id));
        }
    }

    fn enqueue_job(&mut self, job: PendingJob) {
        if job.skill_name == self.args.skill && self.known_jobs.insert(job.job_id.clone()) {
            self.queue.push_back(job);
        }
    }

    /// Starts queued jobs while slots are free.
    fn start_jobs(&mut self) {
        let max_tasks = usize::from(self.args.concurrency);
        while self.tasks.len() < max_tasks && (self.tasks.len() as u64) < self.remaining {
            let Some(job) = self.queue.pop_front() else {
                return;
            };
            let command = self.args.command.clone();
            let limit = self.args.timeout;
            let agent_id = self.command_client.credentials.agent_id.clone();
            let job_id = job.job_id.clone();
            let sharing = match self.args.share_errors {
                true => ErrorSharing::LastLine,
                false => ErrorSharing::Private,
            };
            let abort_handle = self.tasks.spawn(async move {
                let result = job_command::run_job(&command, &job, &agent_id, limit, sharing).await;
                (job, result)
            });
            self.abort_handles.insert(job_id, abort_handle);
        }
    }

    async fn deliver_result(&mut self, job: &PendingJob, result: &Value) -> Result<(), Fail> {
        self.known_jobs.remove(&job.job_id);
        self.abort_handles.remove(&job.job_id);
        match self
            .command_client
            .client
            .deliver_result(&job.job_id, result)
            .await
        {
            Ok(_) => {}
            // The result was refused: it does not fit what the skill promises. The requester learns that the job failed.
            Err(e)
                if e.error_response()
                    .is_some_and(|refusal| refusal.status == 400) =>
            {
                tracing::warn!("{}: the result was refused: {e}", job.job_id);
                let failure = json!({"status": "FAILURE", "error_code": "EXECUTION_ERROR", "error_message": e.to_string()});
                return Box::pin(self.deliver_result(job, &failure)).await;
            }
            // The job was cancelled or has expired, so the result does not count.
            Err(e)
                if e.error_response()
                    .is_some_and(|refusal| refusal.status == 409) =>
            {
                tracing::warn!("{} had ended before: {e}", job.job_id);
            }
            Err(e) => return Err(e.into()),
        }
        if result["status"] != "PENDING" {
            self.remaining = self.remaining.saturating_sub(1);
        }
        let line = json!({"job_id": job.job_id, "orchestrator_id": job.orchestrator_id, "skill_name": job.skill_name,
            "status": result["status"], "error_code": result["error_code"], "execution_time_ms": result["execution_time_ms"]});
        output::print_result(self.common.json, &line, || {
            let status = result["status"].as_str().unwrap_or_default();
            let ms = &result["execution_time_ms"];
            if let Some(question) = result["question"].as_str() {
                return format!(
                    "asked {}: {}  {}",
                    output::escape_controls(&job.orchestrator_id),
                    output::escape_controls(question),
                    output::escape_controls(&job.job_id)
                );
            }
            let status = match result["error_code"] == job_command::DECLINED {
                true => "DECLINED",
                false => status,
            };
            format!(
                "{status} for {} in {ms} ms  {}",
                output::escape_controls(&job.orchestrator_id),
                output::escape_controls(&job.job_id)
            )
        });
        Ok(())
    }
}
