//! Requests jobs, delivers their results and reads their state.

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result};
use chorus_wire::credits::{CURRENCY, Credits};
use chorus_wire::market::job::{Job, JobList, JobStatus};
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
        }
    }

    /// Sets how long the worker may take; a later result is refused.
    pub fn with_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline_ms = deadline.map(|deadline| deadline.as_millis() as u64);
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
        let mut filters = Vec::new();
        filters.extend(role.map(|role| format!("role={}", role.as_str())));
        filters.extend(status.map(|status| format!("status={}", status.as_str())));
        self.send_with_retry(ApiCall::get(format!("/jobs?{}", filters.join("&"))))
            .await?
            .into_bare()
    }

    /// Pending jobs of this worker.
    pub async fn list_pending_jobs(&self) -> Result<Vec<PendingJob>> {
        let jobs = self
            .list_jobs(Some(JobRole::Worker), Some(JobStatus::Pending))
            .await?
            .jobs;
        Ok(jobs.into_iter().map(pending_job).collect())
    }

    /// Cancels a job that has no result yet.
    pub async fn cancel_job(&self, job_id: &str) -> Result<Job> {
        self.send_with_retry(ApiCall::post(
            format!("/jobs/{}/cancel", encode_segment(job_id)),
            "{}".into(),
        ))
        .await?
        .into_bare()
    }

    /// Delivers the worker's result. The first result counts; repeating it is no error.
    pub async fn deliver_result(&self, job_id: &str, result: &Value) -> Result<Job> {
        self.send_with_retry(ApiCall::post(
            format!("/jobs/{}/result", encode_segment(job_id)),
            result.to_string(),
        ))
        .await?
        .into_bare()
    }
}

fn pending_job(job: Job) -> PendingJob {
    PendingJob {
        job_id: job.job_id,
        orchestrator_id: job.orchestrator_id,
        skill_name: job.skill_name,
        input_data: job.input_data.unwrap_or_default(),
    }
}
