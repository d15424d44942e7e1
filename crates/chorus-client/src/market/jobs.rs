//! Asking for work, doing it, and where it stands.

use crate::http::{Call, segment};
use crate::{Client, Error, Result};
use chorus_wire::market::credits::{CURRENCY, Credits};
use chorus_wire::market::job::{Job, Jobs, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Hire {
    /// Ours, so that a repeated request is the same job.
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

impl Hire {
    pub fn new(skill_name: &str, input_data: Value, budget: Credits) -> Self {
        Self {
            job_id: super::new_id(),
            agent_id: None,
            skill_name: skill_name.to_owned(),
            input_data,
            budget,
            currency: CURRENCY,
            deadline_ms: None,
        }
    }

    /// No result counts after this long.
    pub fn within(mut self, deadline: Option<Duration>) -> Self {
        self.deadline_ms = deadline.map(|deadline| deadline.as_millis() as u64);
        self
    }
}

/// A job as its worker hears of it; only what it needs to do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    #[serde(default)]
    pub input_data: Value,
}

/// On which side of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Worker,
    Orchestrator,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Orchestrator => "orchestrator",
        }
    }
}

impl Client {
    /// Asks for a job. It has its own id, so a connection that breaks is simply tried again: it is asked for once.
    pub async fn hire(&self, hire: &Hire) -> Result<Job> {
        let body = serde_json::to_string(hire).map_err(|e| Error::Input(e.to_string()))?;
        self.ask_patiently(Call::post("/jobs", body)).await?.bare()
    }

    pub async fn job(&self, job_id: &str) -> Result<Job> {
        self.ask_patiently(Call::get(format!("/jobs/{}", segment(job_id))))
            .await?
            .bare()
    }

    /// The latest jobs of this agent, newest first.
    pub async fn jobs(&self, role: Option<Role>, status: Option<Status>) -> Result<Jobs> {
        let mut filters = Vec::new();
        filters.extend(role.map(|role| format!("role={}", role.as_str())));
        filters.extend(status.map(|status| format!("status={}", status.as_str())));
        self.ask_patiently(Call::get(format!("/jobs?{}", filters.join("&"))))
            .await?
            .bare()
    }

    /// Jobs that wait for this agent's work.
    pub async fn waiting(&self) -> Result<Vec<Asked>> {
        let jobs = self
            .jobs(Some(Role::Worker), Some(Status::Pending))
            .await?
            .jobs;
        Ok(jobs.into_iter().map(asked).collect())
    }

    /// Takes a job back before its result.
    pub async fn cancel(&self, job_id: &str) -> Result<Job> {
        self.ask_patiently(Call::post(
            format!("/jobs/{}/cancel", segment(job_id)),
            "{}".into(),
        ))
        .await?
        .bare()
    }

    /// The worker's result. The first one stands; the same again is no error.
    pub async fn deliver(&self, job_id: &str, result: &Value) -> Result<Job> {
        self.ask_patiently(Call::post(
            format!("/jobs/{}/result", segment(job_id)),
            result.to_string(),
        ))
        .await?
        .bare()
    }
}

fn asked(job: Job) -> Asked {
    Asked {
        job_id: job.job_id,
        orchestrator_id: job.orchestrator_id,
        skill_name: job.skill_name,
        input_data: job.input_data.unwrap_or_default(),
    }
}
