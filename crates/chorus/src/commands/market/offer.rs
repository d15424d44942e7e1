//! `chorus offer`: serve a skill by running a command for every job.

use super::{read, work};
use crate::signals::Stop;
use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::market::Asked;
use chorus_client::stream::Event;
use chorus_wire::market::credits::Credits;
use chorus_wire::market::job::Status;
use chorus_wire::market::skill::Skill;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What you can do
    skill: String,
    /// What one job costs
    #[arg(long, value_name = "CREDITS", value_parser = read::amount)]
    cost: Credits,
    /// What it is about, for those who choose
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A file with what goes in: JSON Schema, or {"field": "type"}
    #[arg(long, value_name = "FILE")]
    input_schema: Option<String>,
    /// A file with what comes out
    #[arg(long, value_name = "FILE")]
    output_schema: Option<String>,
    /// How many jobs at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// How long a job may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::commands::span::parse)]
    timeout: Duration,
    /// End after this many jobs
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// The command and its words; input JSON on its standard input, output JSON on its standard output
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let stop = Stop::watch()?;
    let skill = Skill {
        skill_name: args.skill.clone(),
        description: args.description.clone(),
        cost_per_call: args.cost,
        input_schema: schema(args.input_schema.as_deref())?,
        output_schema: schema(args.output_schema.as_deref())?,
    };
    let session = Session::open(common)?;
    session.client.offer(&skill).await?;
    let left = args.count.unwrap_or(u64::MAX);
    let mut worker = Worker {
        common,
        args: &args,
        session: &session,
        queue: VecDeque::new(),
        known: HashSet::new(),
        under_way: JoinSet::new(),
        running: HashMap::new(),
        left,
    };
    let served = worker.serve(stop).await;
    // Nobody shall be asked for what nobody does: a job that waits in vain costs reputation.
    let withdrawn = session.client.withdraw(&args.skill).await;
    served.and(withdrawn.map_err(Fail::from))
}

fn schema(file: Option<&str>) -> Result<Option<Value>, Fail> {
    file.map(|file| read::input(&format!("@{file}")))
        .transpose()
}

struct Worker<'a> {
    common: &'a Common,
    args: &'a Args,
    session: &'a Session,
    /// Jobs that wait for a place.
    queue: VecDeque<Asked>,
    /// Jobs that were queued since the hub last said which ones wait: an event and that list may name the same job.
    known: HashSet<String>,
    under_way: JoinSet<(Asked, Value)>,
    /// How each of them is broken off.
    running: HashMap<String, AbortHandle>,
    /// How many more to do.
    left: u64,
}

impl Worker<'_> {
    async fn serve(&mut self, mut stop: Stop) -> Result<(), Fail> {
        let mut stream = self.session.client.inbox(None).await;
        let mut stopping = false;
        while !stopping || !self.under_way.is_empty() {
            tokio::select! {
                event = stream.next() => self.hear(event?).await?,
                Some(done) = self.under_way.join_next() => {
                    match done {
                        Ok((job, result)) => self.deliver(&job, &result).await?,
                        // Taken back while it ran.
                        Err(error) if error.is_cancelled() => {}
                        Err(error) => tracing::warn!("a job was lost: {error}"),
                    }
                    stopping |= self.left == 0;
                }
                // What is under way is finished; what waits is left to the hub.
                () = stop.asked(), if !stopping => stopping = true,
            }
            if !stopping {
                self.start();
            }
        }
        Ok(())
    }

    async fn hear(&mut self, event: Event) -> Result<(), Fail> {
        match event.name.as_str() {
            // Whatever came while nobody listened, also before a crash, still waits.
            "connected" => {
                let waiting = self.session.client.waiting().await?;
                self.missed(&waiting).await?;
                for job in waiting {
                    self.take(job);
                }
                if !self.common.json {
                    tracing::info!("offering {}", self.args.skill);
                }
            }
            "job" => match serde_json::from_str::<Asked>(&event.data) {
                Ok(job) => self.take(job),
                Err(e) => tracing::warn!("a job was not understood: {e}"),
            },
            // A worker hears of an end that is not its own: the job was cancelled, or its time has run out.
            "job_result" => {
                let ended: Value = serde_json::from_str(&event.data).unwrap_or_default();
                let by_others = matches!(ended["state"].as_str(), Some("cancelled" | "expired"));
                if let (true, Some(job_id)) = (by_others, ended["job_id"].as_str()) {
                    self.drop_job(job_id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Jobs whose end came while the stream was away.
    async fn missed(&mut self, waiting: &[Asked]) -> Result<(), Fail> {
        let gone = |id: &String| !waiting.iter().any(|job| job.job_id == **id);
        for job_id in self
            .running
            .keys()
            .filter(|id| gone(id))
            .cloned()
            .collect::<Vec<_>>()
        {
            if self.session.client.job(&job_id).await?.status != Status::Pending {
                self.drop_job(&job_id);
            }
        }
        Ok(())
    }

    /// Nobody waits for it any more: whatever was begun for it is ended.
    fn drop_job(&mut self, job_id: &str) {
        self.queue.retain(|job| job.job_id != job_id);
        self.known.remove(job_id);
        if let Some(running) = self.running.remove(job_id) {
            running.abort();
            tracing::warn!("{} was taken back", out::harmless(job_id));
        }
    }

    fn take(&mut self, job: Asked) {
        if job.skill_name == self.args.skill && self.known.insert(job.job_id.clone()) {
            self.queue.push_back(job);
        }
    }

    /// Fills the free places.
    fn start(&mut self) {
        let places = usize::from(self.args.concurrency);
        while self.under_way.len() < places && (self.under_way.len() as u64) < self.left {
            let Some(job) = self.queue.pop_front() else {
                return;
            };
            let (command, limit) = (self.args.command.clone(), self.args.timeout);
            let agent_id = self.session.who.agent_id.clone();
            let job_id = job.job_id.clone();
            let running = self.under_way.spawn(async move {
                let result = work::done(&command, &job, &agent_id, limit).await;
                (job, result)
            });
            self.running.insert(job_id, running);
        }
    }

    async fn deliver(&mut self, job: &Asked, result: &Value) -> Result<(), Fail> {
        self.known.remove(&job.job_id);
        self.running.remove(&job.job_id);
        match self.session.client.deliver(&job.job_id, result).await {
            Ok(_) => {}
            // It was cancelled, or its time had run out: that stands.
            Err(e) if e.refusal().is_some_and(|refusal| refusal.status == 409) => {
                tracing::warn!("{} had ended before: {e}", job.job_id);
            }
            Err(e) => return Err(e.into()),
        }
        self.left = self.left.saturating_sub(1);
        let line = json!({"job_id": job.job_id, "orchestrator_id": job.orchestrator_id, "skill_name": job.skill_name,
            "status": result["status"], "execution_time_ms": result["execution_time_ms"]});
        out::say(self.common.json, &line, || {
            let (status, ms) = (
                result["status"].as_str().unwrap_or_default(),
                &result["execution_time_ms"],
            );
            format!(
                "{status} for {} in {ms} ms  {}",
                out::harmless(&job.orchestrator_id),
                out::harmless(&job.job_id)
            )
        });
        Ok(())
    }
}
