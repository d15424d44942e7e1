//! Requests jobs, delivers their results and reads their state.

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result};
use chorus_wire::credits::{CURRENCY, Credits};
use chorus_wire::market::job::{Job, JobBoard, JobList, JobStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The fields of a job request.
#[derive(Clone, Debug, Serialize)]
pub struct JobRequest {
    /// Chosen by the client, so that a repeated request is the same job.
    pub job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub skill_name: String,
    pub input_data: Value,
    pub budget: Credits,
    currency: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approve_within_ms: Option<u64>,
}

impl JobRequest {
    pub fn new(skill_name: &str, input_data: Value, budget: Credits) -> Self {
        Self {
            job_id: super::random_id(),
            agent_id: None,
            skill_name: skill_name.to_owned(),
            input_data,
            budget,
            currency: CURRENCY,
            deadline_ms: None,
            board: None,
            approve_within_ms: None,
        }
    }

    /// Sets how long the worker may take; a later result is refused.
    pub fn with_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline_ms = deadline.map(|deadline| deadline.as_millis() as u64);
        self
    }
}

impl JobRequest {
    /// Puts the job on the board; with a time for approval, the delivery is paid when it is approved or the time is over.
    pub fn on_board(mut self, approve_within: Option<Duration>) -> Self {
        self.board = Some(true);
        self.approve_within_ms = approve_within.map(|window| window.as_millis() as u64);
        self
    }
}

/// A job as its worker receives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingJob {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    #[serde(default)]
    pub input_data: Value,
    /// What this worker asked, and the requester's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The agent's role in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRole {
    Worker,
    Orchestrator,
}

impl JobRole {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Orchestrator => "orchestrator",
        }
    }
}

impl HubClient {
    /// Requests a job. A retry repeats the job's id, so it is created once.
    pub async fn request_job(&self, request: &JobRequest) -> Result<Job> {
        let body = serde_json::to_string(request).map_err(|e| Error::Input(e.to_string()))?;
        self.send_with_retry(ApiCall::post("/jobs", body))
            .await?
            .into_bare()
    }

    pub async fn fetch_job(&self, job_id: &str) -> Result<Job> {
        self.send_with_retry(ApiCall::get(format!("/jobs/{}", encode_segment(job_id))))
            .await?
            .into_bare()
    }

    /// This agent's latest jobs, newest first.
    pub async fn list_jobs(
        &self,
        role: Option<JobRole>,
        status: Option<JobStatus>,
    ) -> Result<JobList> {
        self.list_jobs_before(role, status, None).await
    }

    async fn list_jobs_before(
        &self,
        role: Option<JobRole>,
        status: Option<JobStatus>,
        before: Option<&str>,
    ) -> Result<JobList> {
        let mut filters = Vec::new();
        filters.extend(role.map(|role| format!("role={}", role.as_str())));
        filters.extend(status.map(|status| format!("status={}", status.as_str())));
        filters.extend(before.map(|job_id| format!("before={}", encode_segment(job_id))));
        self.send_with_retry(ApiCall::get(format!("/jobs?{}", filters.join("&"))))
            .await?
            .into_bare()
    }

    /// The jobs that this worker has to do, the oldest first, with their inputs. Not those that wait for an answer or for approval.
    pub async fn list_pending_jobs(&self) -> Result<Vec<PendingJob>> {
        let mut waiting = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let page = self
                .list_jobs_before(
                    Some(JobRole::Worker),
                    Some(JobStatus::Pending),
                    before.as_deref(),
                )
                .await?;
            let Some(last) = page.jobs.last() else {
                break;
            };
            before = Some(last.job_id.clone());
            for job in page.jobs {
                if matches!(job.state.as_str(), "held" | "dispatched") {
                    waiting.push(self.with_input(job).await?);
                }
            }
        }
        waiting.reverse();
        Ok(waiting)
    }

    /// An older hub lists jobs without their inputs.
    async fn with_input(&self, job: Job) -> Result<PendingJob> {
        let job = match job.input_data {
            Some(_) => job,
            None => self.fetch_job(&job.job_id).await?,
        };
        Ok(PendingJob::from(job))
    }

    /// The jobs on the board, oldest first.
    pub async fn list_board(&self, skill_name: Option<&str>) -> Result<JobBoard> {
        let filter = skill_name
            .map(|name| format!("?skill={}", encode_segment(name)))
            .unwrap_or_default();
        self.send_with_retry(ApiCall::get(format!("/board{filter}")))
            .await?
            .into_bare()
    }

    /// Claims a job on the board. A repeated claim of the same agent gets the job again.
    pub async fn claim_job(&self, job_id: &str) -> Result<Job> {
        self.act_on_job(job_id, "claim", "{}".into()).await
    }

    /// Pays for a delivery.
    pub async fn approve_job(&self, job_id: &str) -> Result<Job> {
        self.act_on_job(job_id, "approve", "{}".into()).await
    }

    /// Does not pay for a delivery.
    pub async fn reject_job(&self, job_id: &str, reason: Option<&str>) -> Result<Job> {
        let body = serde_json::json!({"reason": reason}).to_string();
        self.act_on_job(job_id, "reject", body).await
    }

    /// Answers the worker's question.
    pub async fn answer_job(&self, job_id: &str, answer: &str) -> Result<Job> {
        let body = serde_json::json!({"answer": answer}).to_string();
        self.act_on_job(job_id, "answer", body).await
    }

    async fn act_on_job(&self, job_id: &str, act: &str, body: String) -> Result<Job> {
        let path = format!("/jobs/{}/{act}", encode_segment(job_id));
        self.send_with_retry(ApiCall::post(path, body))
            .await?
            .into_bare()
    }

    /// Cancels a job that has no result yet.
    pub async fn cancel_job(&self, job_id: &str) -> Result<Job> {
        self.act_on_job(job_id, "cancel", "{}".into()).await
    }

    /// Delivers the worker's report. The first result counts: after it, every other is refused with 409.
    pub async fn deliver_result(&self, job_id: &str, result: &Value) -> Result<Job> {
        self.send_with_retry(ApiCall::post(
            format!("/jobs/{}/result", encode_segment(job_id)),
            result.to_string(),
        ))
        .await?
        .into_bare()
    }
}

impl From<Job> for PendingJob {
    fn from(job: Job) -> Self {
        Self {
            job_id: job.job_id,
            orchestrator_id: job.orchestrator_id,
            skill_name: job.skill_name,
            input_data: job.input_data.unwrap_or_default(),
            question: job.question,
            answer: job.answer,
        }
    }
}
