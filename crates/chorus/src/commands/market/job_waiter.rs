//! Waits for a job's result: notified by the inbox stream, and fetched again after each reconnect.

use crate::fail::{ExitKind, Fail};
use crate::output;
use chorus_client::market::JobRequest;
use chorus_client::{HubClient, event_stream::EventStream};
use chorus_wire::market::job::{Job, JobStatus, JobUpdateKind};
use serde_json::Value;
use std::io::IsTerminal;

/// An open inbox stream. It is opened before the job is requested, so that no result event is missed.
pub struct JobWaiter {
    client: HubClient,
    stream: EventStream,
    /// What happens meanwhile is not told with `--json`.
    json: bool,
}

impl JobWaiter {
    pub async fn open(client: &HubClient, json: bool) -> Result<Self, Fail> {
        let mut stream = client.open_inbox(None).await;
        while stream.next().await?.name != "connected" {}
        Ok(Self {
            client: client.clone(),
            stream,
            json,
        })
    }

    /// Requests the job and waits for its end; the hub ends every job at its deadline.
    pub async fn request_and_wait(&mut self, request: &JobRequest) -> Result<Job, Fail> {
        let mut job = self.client.request_job(request).await?;
        if std::io::stderr().is_terminal() {
            output::print_aside(self.json, &describe_wait(&job));
        }
        while job.status == JobStatus::Pending {
            let event = self.stream.next().await?;
            let is_about_job = match event.name.as_str() {
                "job_result" => {
                    let ended: Value = serde_json::from_str(&event.data).unwrap_or_default();
                    ended["job_id"] == request.job_id.as_str()
                }
                "job_update" => {
                    report_update(&event.data, &request.job_id, self.json);
                    false
                }
                // The stream was reconnected, so the result event may be lost.
                "connected" => true,
                _ => false,
            };
            if is_about_job {
                job = self.client.fetch_job(&request.job_id).await?;
            }
        }
        Ok(job)
    }
}

fn describe_wait(job: &Job) -> String {
    let worker = job.agent_id.as_deref().unwrap_or("an agent that claims it");
    let deadline = crate::local_time::date_time(&job.deadline_utc.to_string());
    let id = &job.job_id;
    format!(
        "waiting for {worker}, at most until {deadline}; Ctrl-C stops waiting, the job goes on: chorus jobs {id}"
    )
}

/// Shows on standard error what the worker says, and what the requester has to do about it. Its progress is for terminals.
fn report_update(data: &str, job_id: &str, json: bool) {
    let Ok(job) = serde_json::from_str::<Job>(data) else {
        return;
    };
    let update = job.timeline.as_deref().and_then(<[_]>::last);
    let Some(update) = update.filter(|_| job.job_id == job_id) else {
        return;
    };
    let text = output::escape_controls(update.text.as_deref().unwrap_or_default());
    match update.kind {
        JobUpdateKind::Question => {
            let text =
                format!("the worker asks: {text} (answer: chorus jobs {job_id} --answer TEXT)");
            output::print_aside(json, &text);
        }
        JobUpdateKind::Delivered => {
            let text =
                format!("delivered (chorus jobs {job_id}, then --approve or --reject REASON)");
            output::print_aside(json, &text);
        }
        JobUpdateKind::Claimed
        | JobUpdateKind::Progress
        | JobUpdateKind::Answer
        | JobUpdateKind::Refused
        | JobUpdateKind::Declined
        | JobUpdateKind::Unreachable
        | JobUpdateKind::Lapsed
        | JobUpdateKind::Rejected => {
            if std::io::stderr().is_terminal() {
                output::print_aside(json, &format!("{}: {text}", update.kind));
            }
        }
    }
}

/// A failed job is an error with exit code 4.
pub fn check_success(job: &Job) -> Result<(), Fail> {
    match job.status {
        JobStatus::Success => Ok(()),
        JobStatus::Failure | JobStatus::Pending => {
            let code = job.error_code.as_deref().unwrap_or("EXECUTION_ERROR");
            let message = job.error_message.as_deref().unwrap_or("the job failed");
            Err(Fail::new(ExitKind::Refused, code, message))
        }
    }
}
