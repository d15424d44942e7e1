//! Jobs: the request, the result, and a job as its parties see it (R-62, JOB-16…19, JOB-32).

use super::credits::{CURRENCY, Credits};
use super::transfer::{find_raw_value, take_amount};
use super::{check_opaque_id, take_timestamp};
use crate::json::{self, JsonFields};
use crate::string_enum::string_enum;
use crate::{Error, ErrorCode, Result, limits, time::UnixMicros};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

string_enum! {
    /// The status of a job in the jobs document (JOB-06).
    #[derive(ToSchema)]
    JobStatus {
        Pending "PENDING",
        Success "SUCCESS",
        Failure "FAILURE",
    }
}

/// The checked body of `POST /jobs`.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRequest {
    /// If absent, the hub generates one.
    pub job_id: Option<String>,
    pub orchestrator_id: Option<String>,
    /// The worker; if absent, the hub chooses the best match.
    pub agent_id: Option<String>,
    pub skill_name: String,
    pub input_data: Value,
    pub budget: Credits,
    pub callback_url: Option<String>,
    pub deadline: Duration,
    /// The canonical text of the request, by which repeated requests are compared (failure 17).
    pub canonical_json: String,
}

impl JobRequest {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let canonical_json = json::to_canonical_json(&json::parse_value(text)?);
        let mut fields = json::parse_object(text)?;
        let skill_name = fields.optional_label("skill_name", limits::LABEL_CHARS)?;
        let request = Self {
            job_id: fields
                .optional_string("job_id")?
                .map(|job| check_opaque_id("job_id", job))
                .transpose()?,
            orchestrator_id: fields.optional_label("orchestrator_id", limits::LABEL_CHARS)?,
            agent_id: fields.optional_label("agent_id", limits::LABEL_CHARS)?,
            skill_name: skill_name.ok_or_else(|| Error::validation("skill_name is required"))?,
            input_data: take_job_data(text, &mut fields, "input_data")?
                .unwrap_or_else(|| Value::Object(Default::default())),
            budget: take_amount(text, &mut fields, "budget")?,
            callback_url: crate::endpoint_url::parse_endpoint(&mut fields, "callback_url")?,
            deadline: take_deadline(&mut fields)?,
            canonical_json,
        };
        take_timestamp(&mut fields)?;
        if fields
            .optional_string("currency")?
            .is_some_and(|currency| currency != CURRENCY)
        {
            return Err(Error::validation(format!("currency must be {CURRENCY}")));
        }
        fields.reject_unknown()?;
        Ok(request)
    }
}

fn take_deadline(fields: &mut JsonFields) -> Result<Duration> {
    let Some(millis) = fields.optional_count("deadline_ms", 1)? else {
        return Ok(limits::JOB_DEADLINE_DEFAULT);
    };
    let requested = Duration::from_millis(millis);
    if requested > limits::JOB_DEADLINE_MAX {
        let max_ms = limits::JOB_DEADLINE_MAX.as_millis();
        return Err(Error::validation(format!(
            "deadline_ms must be at most {max_ms}"
        )));
    }
    Ok(requested)
}

/// Takes `input_data` or `output_data`. Its size is limited because inbox events contain it.
fn take_job_data(text: &str, fields: &mut JsonFields, key: &str) -> Result<Option<Value>> {
    let value = fields.take_value(key);
    if value.is_some()
        && find_raw_value(text, key).is_some_and(|raw| raw.len() > limits::JOB_DATA_OCTETS)
    {
        let message = format!("{key} is larger than {} octets", limits::JOB_DATA_OCTETS);
        return Err(Error::new(ErrorCode::TooLarge, message));
    }
    // PostgreSQL cannot store NUL in a text.
    if value
        .as_ref()
        .is_some_and(|value| value.to_string().contains("\\u0000"))
    {
        return Err(Error::validation(format!(
            "{key} must not have NUL characters in it"
        )));
    }
    Ok(value)
}

/// The final result that a worker reports.
#[derive(Clone, Debug, PartialEq)]
pub struct JobResult {
    pub job_id: Option<String>,
    pub agent_id: Option<String>,
    pub outcome: JobOutcome,
    pub execution_time_ms: Option<u64>,
}

/// The outcome of a job. The cost of a failure is ignored, because a failure is not paid.
#[derive(Clone, Debug, PartialEq)]
pub enum JobOutcome {
    /// If the cost is absent, the offered price applies.
    Success {
        output_data: Value,
        execution_cost: Option<Credits>,
    },
    Failure {
        error_code: Option<String>,
        error_message: String,
    },
}

impl JobResult {
    /// Parses the body of `POST /jobs/{id}/result`. Unknown fields are ignored: workers send more than the document asks.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let mut fields = json::parse_object(text)?;
        let status = fields.required_string("status")?;
        let cost = match fields.take_value("execution_cost") {
            None | Some(Value::Null) => None,
            Some(_) => Some(find_raw_value(text, "execution_cost").unwrap_or_default()),
        };
        let outcome = match JobStatus::parse(&status) {
            Some(JobStatus::Success) => JobOutcome::Success {
                output_data: take_job_data(text, &mut fields, "output_data")?
                    .unwrap_or(Value::Null),
                execution_cost: cost
                    .map(|cost| Credits::parse_price("execution_cost", &cost))
                    .transpose()?,
            },
            Some(JobStatus::Failure) => JobOutcome::Failure {
                error_code: take_error_code(&mut fields, "error_code"),
                error_message: take_error_message(&mut fields)?,
            },
            Some(JobStatus::Pending) | None => {
                return Err(Error::validation("status must be SUCCESS or FAILURE"));
            }
        };
        take_timestamp(&mut fields)?;
        let execution_time_ms = match fields.take_value("execution_time_ms") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_u64()
                    .filter(|ms| *ms <= i64::MAX as u64)
                    .ok_or_else(|| {
                        Error::validation("execution_time_ms must be a whole number of at least 0")
                    })?,
            ),
        };
        Ok(Self {
            job_id: fields.optional_string("job_id")?,
            agent_id: fields.optional_string("agent_id")?,
            outcome,
            execution_time_ms,
        })
    }
}

fn take_error_code(fields: &mut JsonFields, key: &str) -> Option<String> {
    let text = fields.optional_string(key).ok().flatten()?;
    let is_code_byte = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    ((1..=limits::LABEL_CHARS).contains(&text.len()) && text.bytes().all(is_code_byte))
        .then_some(text)
}

fn take_error_message(fields: &mut JsonFields) -> Result<String> {
    match fields.take_value("error_message") {
        None | Some(Value::Null) => Ok("the agent gave no reason".to_owned()),
        Some(Value::String(text)) => Ok(text
            .chars()
            .filter(|c| *c != '\0')
            .take(limits::DETAIL_CHARS)
            .collect()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(Error::validation("error_message must be a string or null"))
        }
    }
}

/// The job request that the worker receives (JOB-17).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DispatchedJob {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    pub input_data: Value,
    pub budget: Credits,
    pub currency: String,
    /// Where the worker posts the result, if not in its answer.
    pub callback_url: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
    /// Results after this time are refused.
    #[schema(value_type = String, format = DateTime)]
    pub deadline_utc: UnixMicros,
}

/// A job as its parties see it: the keys of the document's result (JOB-19), then those of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job_id: String,
    /// The worker.
    pub agent_id: String,
    pub status: JobStatus,
    pub output_data: Value,
    pub execution_cost: Option<Credits>,
    pub execution_time_ms: Option<u64>,
    pub error_message: Option<String>,
    /// When the job ended; before that, when it was requested.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error_code: Option<String>,
    /// `held`, `dispatched`, `done`, `failed`, `cancelled` or `expired`.
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
    #[schema(value_type = String, format = DateTime)]
    pub deadline_utc: UnixMicros,
}

/// `GET /jobs`, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    pub jobs: Vec<Job>,
}
