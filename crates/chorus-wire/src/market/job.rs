//! Jobs: the request, the result, and a job as its parties see it (R-62, JOB-16…19, JOB-32).

use crate::contract::{
    self, CheckContext, CheckedValue, ContractFault, CustomCheck, FieldCheck, HTTP_URL, INSTANT,
    JsonNode, JsonObject, LengthUnit, OPAQUE_ID, ObjectRule, RefusedCharacters, SchemaRefs,
    characters, impl_from_text_node, integer_between,
};
use crate::credits::{CURRENCY, Credits};
use crate::string_enum::string_enum;
use crate::{Error, Result, identity::AgentName, json, limits, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

string_enum! {
    /// The status of a job (JOB-06).
    #[derive(ToSchema)]
    JobStatus {
        Pending "PENDING",
        Success "SUCCESS",
        Failure "FAILURE",
    }
}

impl_from_text_node!(JobStatus);

wire_object! {
    /// A request to have a job done.
    JobBody as "JobRequest", refuses unknown, example r#"{
        "job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "skill_name": "analyze_text",
        "input_data": {"text": "hello"}, "budget": 0.50, "deadline_ms": 30000}"# => {
        /// A new id that names the job; a repeated request keeps it and starts one job. If absent, the hub makes one.
        optional job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// The agent that asks; the one of the key if absent.
        optional orchestrator_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The agent that works; if absent, the hub chooses the best match.
        optional agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The skill that is asked for.
        required skill_name: String = characters(1, limits::LABEL_CHARS);
        /// The input, in the form of the skill's schema; an empty object if absent.
        optional input_data: Value = FieldCheck::Custom(&JOB_DATA);
        /// The most that the job may cost, in credits; it is held until the job ends.
        required budget: Credits = FieldCheck::Credits { zero: false };
        /// Where the hub posts the result.
        optional callback_url: String = FieldCheck::Grammar(&HTTP_URL);
        /// How long the worker has, in milliseconds.
        optional deadline_ms: u64 = integer_between(
            limits::JOB_DEADLINE_MIN.as_millis() as u64,
            limits::JOB_DEADLINE_MAX.as_millis() as u64,
        );
        /// When the client made the request; the hub ignores it.
        optional timestamp_utc: String = FieldCheck::Grammar(&INSTANT);
        /// The only currency.
        optional currency: String = FieldCheck::OneOf(&[CURRENCY]);
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
        let root = contract::parse_root(body)?;
        let fields: JobBody = contract::parse_node(&root)?;
        // A null is an input of its own, which an Option cannot tell from an absent one.
        let input_data = root.as_object().and_then(|body| body.get("input_data"));
        Ok(Self::from_fields(
            JobBody {
                input_data: input_data.map(JsonNode::to_value),
                ..fields
            },
            &root.to_value(),
        ))
    }

    /// A request that did not come as a body, such as the arguments of a tool.
    pub fn from_checked(fields: JobBody) -> Result<Self> {
        let body = serde_json::to_value(&fields).map_err(Error::internal)?;
        Ok(Self::from_fields(fields, &body))
    }

    fn from_fields(fields: JobBody, body: &Value) -> Self {
        let deadline = fields.deadline_ms.map(Duration::from_millis);
        Self {
            job_id: fields.job_id,
            orchestrator_id: fields.orchestrator_id,
            agent_id: fields.agent_id,
            skill_name: fields.skill_name,
            input_data: fields.input_data.unwrap_or_else(|| json!({})),
            budget: fields.budget,
            callback_url: fields.callback_url,
            deadline: deadline.unwrap_or(limits::JOB_DEADLINE_DEFAULT),
            canonical_json: json::to_canonical_json(body),
        }
    }
}

/// `input_data` or `output_data`. Its size is limited because inbox events contain it.
const JOB_DATA: CustomCheck = CustomCheck {
    find_fault: |value| {
        if value.node.text.len() > limits::JOB_DATA_OCTETS {
            let problem = format!("is larger than {} octets", limits::JOB_DATA_OCTETS);
            return Some(ContractFault::too_large("", problem));
        }
        // PostgreSQL cannot store NUL in a text.
        value
            .node
            .has_nul()
            .then(|| ContractFault::invalid("", "a value without NUL characters"))
    },
    schema: |_| json!({"x-max-octets": limits::JOB_DATA_OCTETS}),
    nested: &[],
};

wire_object! {
    /// The result of a job. Further fields are ignored.
    JobResultBody as "JobResult", allows unknown, rules [RESULT_RULE], example r#"{
        "status": "SUCCESS", "output_data": {"mood": "good"}, "execution_cost": 0.10, "execution_time_ms": 1240}"# => {
        /// How the job ended.
        required status: String = FieldCheck::OneOf(&["SUCCESS", "FAILURE"]);
        /// The job, as in the path.
        optional job_id: String = ANY_TEXT;
        /// The worker, as in the key.
        optional agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The output of a success, in the form of the skill's schema.
        optional output_data: Value = FieldCheck::AnyValue;
        /// The cost of a success, up to the budget; the offered price if absent. A failure is not paid.
        nullable execution_cost: Value = FieldCheck::AnyValue;
        /// How long it took, in milliseconds.
        nullable execution_time_ms: u64 = integer_between(0, i64::MAX as u64);
        /// The code of a failure.
        nullable error_code: Value = FieldCheck::AnyValue;
        /// Why the job failed.
        nullable error_message: Value = FieldCheck::AnyValue;
        /// When the worker made the result.
        optional timestamp_utc: String = FieldCheck::Grammar(&INSTANT);
    }
}

/// The fields of a success are checked only in a success, and those of a failure only in a failure: the document prints
/// both in every result.
const RESULT_RULE: ObjectRule = ObjectRule {
    find_fault: |result| {
        let is_success = result.get("status").and_then(JsonNode::as_text) == Some("SUCCESS");
        let (name, check): (_, &FieldCheck) = if is_success {
            let output = result.get("output_data");
            if let Some(fault) = output.and_then(|node| find_value_fault(node, result, &JOB_DATA)) {
                return Some(fault.inside("output_data"));
            }
            ("execution_cost", &FieldCheck::Credits { zero: true })
        } else {
            ("error_message", &ANY_TEXT)
        };
        let node = result.get(name).filter(|node| !node.is_null())?;
        let value = CheckedValue {
            node,
            siblings: result,
            context: &CheckContext::default(),
        };
        check.find_fault(&value).map(|fault| fault.inside(name))
    },
    describe: |schema, _| {
        let cost = contract::value_schema(&FieldCheck::Credits { zero: true }, SchemaRefs::Inline);
        schema["oneOf"] = json!([
            {"properties": {"status": {"const": "SUCCESS"}, "execution_cost": {"anyOf": [cost, {"type": "null"}]}}, "required": ["status"]},
            {"properties": {"status": {"const": "FAILURE"}, "error_message": {"type": ["string", "null"]}}, "required": ["status"]},
        ]);
    },
};

/// The output of a success, for results that do not come as a body.
pub const OUTPUT_DATA_CHECK: FieldCheck = FieldCheck::Custom(&JOB_DATA);

/// Of any length, because it is cut.
pub const ANY_TEXT: FieldCheck = FieldCheck::Text {
    min: 0,
    max: usize::MAX,
    unit: LengthUnit::Characters,
    refused: RefusedCharacters::None,
};

fn find_value_fault(
    node: &JsonNode<'_>,
    siblings: &JsonObject<'_>,
    check: &CustomCheck,
) -> Option<ContractFault> {
    (check.find_fault)(&CheckedValue {
        node,
        siblings,
        context: &CheckContext::default(),
    })
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

impl JobOutcome {
    /// A failure with what the worker says of it: an invalid code is dropped, a long message cut.
    pub fn failure(error_code: Option<String>, error_message: Option<String>) -> Self {
        Self::Failure {
            error_code: error_code.filter(|code| is_error_code(code)),
            error_message: error_message.map_or_else(
                || "the agent gave no reason".to_owned(),
                |message| cut_message(&message),
            ),
        }
    }
}

impl JobResult {
    /// Parses the body of `POST /jobs/{id}/result`. Unknown fields are ignored: workers send more than the document asks.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let root = contract::parse_root(body)?;
        let fields: JobResultBody = contract::parse_node(&root)?;
        let text = |name: &str| {
            let node = root.as_object().and_then(|body| body.get(name));
            node.and_then(JsonNode::as_text).map(str::to_owned)
        };
        let outcome = if fields.status == JobStatus::Success.as_str() {
            let cost = root.as_object().and_then(|body| body.get("execution_cost"));
            JobOutcome::Success {
                output_data: fields.output_data.unwrap_or_default(),
                execution_cost: cost
                    .and_then(JsonNode::as_number)
                    .and_then(Credits::parse_digits),
            }
        } else {
            JobOutcome::failure(text("error_code"), text("error_message"))
        };
        Ok(Self {
            job_id: fields.job_id,
            agent_id: fields.agent_id,
            outcome,
            execution_time_ms: fields.execution_time_ms,
        })
    }
}

/// A code is for programs: letters, digits and underscores. Anything else is dropped.
fn is_error_code(text: &str) -> bool {
    let is_code_byte = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    (1..=limits::LABEL_CHARS).contains(&text.len()) && text.bytes().all(is_code_byte)
}

fn cut_message(text: &str) -> String {
    text.chars()
        .filter(|c| *c != '\0')
        .take(limits::DETAIL_CHARS)
        .collect()
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
    #[schema(required = true)]
    pub callback_url: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
    /// Results after this time are refused.
    #[schema(value_type = String, format = DateTime)]
    pub deadline_utc: UnixMicros,
}

/// A job as its requester and its worker see it.
// The keys of the document's result (JOB-19) come first, then those of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job_id: String,
    /// The worker.
    pub agent_id: String,
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
