//! A job as others see it: what its worker gets, its status, its timeline, and what its requester answers (JOB-17, R-62).

use crate::contract;
use crate::credits::Credits;
use crate::market::job::{JobStatus, NOTE_CHECK};
use crate::string_enum::string_enum;
use crate::{Result, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The job request that the worker receives (JOB-17).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DispatchedJob {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    pub input_data: Value,
    pub budget: Credits,
    pub currency: String,
    /// Where the worker posts the result, if not in its answer. For a worker with an endpoint it contains a secret, so that no
    /// key is needed.
    #[schema(required = true)]
    pub callback_url: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
    /// Results after this time are refused.
    #[schema(value_type = String, format = DateTime)]
    pub deadline_utc: UnixMicros,
    /// What the worker asked, when it gets the job again with the answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<String>,
    /// The requester's answer to the question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<String>,
}

/// A job as its requester and its worker see it.
// The keys of the document's result (JOB-19) come first, then those of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job_id: String,
    /// The worker; null while the job is on the board.
    #[schema(required = true)]
    pub agent_id: Option<String>,
    pub status: JobStatus,
    pub output_data: Value,
    #[schema(required = true)]
    pub execution_cost: Option<Credits>,
    #[schema(required = true)]
    pub execution_time_ms: Option<u64>,
    #[schema(required = true)]
    pub error_message: Option<String>,
    /// When the job ended; before that, when it was requested.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_code: Option<String>,
    /// `open` (on the board), `held`, `dispatched`, `input-required`, `delivered` (waits for approval), `done`, `failed`,
    /// `cancelled` or `expired`.
    pub state: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_data: Option<Value>,
    pub budget: Credits,
    #[schema(example = "chorus_credits_v1")]
    pub currency: String,
    #[schema(value_type = String, format = DateTime)]
    pub requested_at: UnixMicros,
    /// When the job expires; for a delivered one, when it is approved by itself.
    #[schema(value_type = String, format = DateTime)]
    pub deadline_utc: UnixMicros,
    /// The latest progress line of the worker.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<String>,
    /// What the worker asks or asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<String>,
    /// How long the requester has to reject a delivery of this job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approve_within_ms: Option<u64>,
    /// When a job that was claimed on the board goes back to it, unless its worker reports.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lease_utc: Option<UnixMicros>,
    /// What happened to the job, oldest first: in the reply for one job, and in `job_update` the new update alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline: Option<Vec<JobUpdate>>,
}

string_enum! {
    /// What happened to a job between its request and its end.
    #[derive(ToSchema)]
    JobUpdateKind {
        /// An agent claimed it on the board.
        Claimed "claimed",
        /// Its worker reported how far it is.
        Progress "progress",
        /// Its worker asked a question.
        Question "question",
        /// Its requester answered.
        Answer "answer",
        /// A result of its worker was refused, and may be sent again.
        Refused "refused",
        /// Its worker declined it.
        Declined "declined",
        /// Its worker could not be reached.
        Unreachable "unreachable",
        /// Its worker did not report within the lease.
        Lapsed "lapsed",
        /// Its worker delivered a result that waits for approval.
        Delivered "delivered",
        /// Its requester rejected the delivery.
        Rejected "rejected",
    }
}

/// One update of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobUpdate {
    pub kind: JobUpdateKind,
    /// The agent that did it, or to which it happened; absent when it has left.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}

wire_object! {
    /// The answer to a worker's question.
    JobAnswer, refuses unknown, example r#"{"answer": "into French, please"}"# => {
        /// The answer.
        required answer: String = NOTE_CHECK;
    }
}

wire_object! {
    /// Why a delivery is rejected.
    JobRejection, refuses unknown, example r#"{"reason": "the figures are missing"}"# => {
        /// The reason, for the worker.
        nullable reason: String = NOTE_CHECK;
    }
}

/// The reason in the body of `POST /jobs/{id}/reject`, which may be empty.
pub fn parse_rejection(body: &[u8]) -> Result<Option<String>> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let rejection: JobRejection = contract::parse_body(body)?;
    Ok(rejection.reason)
}

/// `GET /board`: jobs that can be claimed, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobBoard {
    pub jobs: Vec<Job>,
}

/// `GET /jobs`, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    pub jobs: Vec<Job>,
}
