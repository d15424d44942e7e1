//! Jobs: the request and the result (R-62, JOB-16…19, JOB-32).

use crate::contract::{
    self, CheckContext, CheckedValue, ContractFault, CustomCheck, FieldCheck, HTTP_URL, JsonNode,
    JsonObject, LengthUnit, OPAQUE_ID, ObjectRule, RefusedCharacters, SchemaRefs, TextGrammar,
    UTC_INSTANT, characters, impl_from_text_node, integer_between, is_http_url,
};
use crate::credits::{CURRENCY, Credits};
use crate::string_enum::string_enum;
use crate::{Error, Result, identity::AgentName, json, limits, wire_object};
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

pub use crate::market::job_view::*;

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
    JobBody as "JobRequest", refuses unknown, rules [BOARD_RULE], example r#"{
        "job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "skill_name": "analyze_text",
        "input_data": {"text": "hello"}, "budget": 0.50, "deadline_ms": 30000}"# => {
        /// A new id that names the job; a repeated request keeps it and starts one job. If absent, the hub makes one.
        nullable job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// The agent that asks; the one of the key if absent.
        nullable orchestrator_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The agent that works; if absent, the hub chooses the best match, and the next best when that one is away or declines.
        nullable agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The skill that is asked for.
        required skill_name: String = characters(1, limits::LABEL_CHARS);
        /// The input, in the form of the skill's schema; an empty object if absent.
        optional input_data: Value = FieldCheck::Custom(&JOB_DATA);
        /// The most that the job may cost, in credits; it is held until the job ends. 0 for a skill that is free.
        required budget: Credits = FieldCheck::Credits { zero: true };
        /// Where the hub posts the result; empty for nowhere.
        nullable callback_url: String = FieldCheck::Grammar(&RESULT_URL);
        /// How long the worker has, in milliseconds.
        nullable deadline_ms: u64 = integer_between(
            limits::JOB_DEADLINE_MIN.as_millis() as u64,
            limits::JOB_DEADLINE_MAX.as_millis() as u64,
        );
        /// true: put the job on the board, where the first agent with the skill that claims it gets it.
        nullable board: bool = FieldCheck::Bool;
        /// Pay only after the requester has approved the delivery, or after this many milliseconds. Only for a job on the board.
        nullable approve_within_ms: u64 = integer_between(
            limits::JOB_DEADLINE_MIN.as_millis() as u64,
            limits::JOB_DEADLINE_MAX.as_millis() as u64,
        );
        /// When the client made the request; the hub ignores it.
        nullable timestamp_utc: String = FieldCheck::Grammar(&UTC_INSTANT);
        /// The only currency.
        nullable currency: String = FieldCheck::OneOf(&[CURRENCY]);
    }
}

/// The board is for jobs without a worker. Approval is for the board alone: its workers see the condition before they claim.
const BOARD_RULE: ObjectRule = ObjectRule {
    find_fault: |request| {
        let is_given = |name: &str| request.get(name).is_some_and(|node| !node.is_null());
        let is_board = request.get("board").and_then(JsonNode::as_bool) == Some(true);
        if is_board && is_given("agent_id") {
            let sentence = "agent_id must be left out where board is true";
            return Some(ContractFault::explain("agent_id", sentence));
        }
        (!is_board && is_given("approve_within_ms")).then(|| {
            let sentence = "approve_within_ms needs board to be true";
            ContractFault::explain("approve_within_ms", sentence)
        })
    },
    describe: |schema, _| {
        // Not as alternatives, which generators of clients would turn into several types.
        let names_worker = json!({"properties": {"board": {"const": true}, "agent_id": {"type": "string"}},
            "required": ["board", "agent_id"]});
        let is_off_board = json!({"properties": {"board": {"enum": [false, null]}, "approve_within_ms": {"type": "integer"}},
            "required": ["approve_within_ms"]});
        schema["not"] = json!({"anyOf": [names_worker, is_off_board]});
    },
};

/// Clients whose field has no value send an empty text (R-103).
const RESULT_URL: TextGrammar = TextGrammar {
    accepts: |text| text.is_empty() || is_http_url(text),
    requirement: "an absolute http or https URL, or empty",
    pattern: r"^(?:[Hh][Tt][Tt][Pp][Ss]?://[^\s\u0000-\u0020\u007f-\u009f\\@/?#]+(?:[/?#][^\s\u0000-\u0020\u007f-\u009f]*)?)?$",
    ..HTTP_URL
};

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
    /// Whether it goes on the board, and how long the requester has to approve the delivery.
    pub board: Option<BoardTerms>,
    /// The canonical text of the request, by which repeated requests are compared (failure 17).
    pub canonical_json: String,
}

/// The terms of a job on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardTerms {
    /// How long the requester has to reject a delivery; without it, a delivery is paid at once.
    pub approve_within: Option<Duration>,
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
            callback_url: fields.callback_url.filter(|url| !url.is_empty()),
            deadline: deadline.unwrap_or(limits::JOB_DEADLINE_DEFAULT),
            board: fields.board.unwrap_or(false).then(|| BoardTerms {
                approve_within: fields.approve_within_ms.map(Duration::from_millis),
            }),
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
    /// The result of a job, or with PENDING what the worker has to say before it. Further fields are ignored.
    JobResultBody as "JobResult", allows unknown, rules [RESULT_RULE], example r#"{
        "status": "SUCCESS", "output_data": {"mood": "good"}, "execution_cost": 0.10, "execution_time_ms": 1240}"# => {
        /// How the job ended; PENDING while the worker is still at it.
        required status: String = FieldCheck::OneOf(JobStatus::TEXTS);
        /// The job, as in the path.
        nullable job_id: String = ANY_TEXT;
        /// The worker, as in the key.
        nullable agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// The output of a success, in the form of the skill's schema.
        optional output_data: Value = FieldCheck::AnyValue;
        /// The cost of a success, up to the agreed price; that price if absent. A failure is not paid.
        nullable execution_cost: Value = FieldCheck::AnyValue;
        /// How long it took, in milliseconds.
        nullable execution_time_ms: u64 = integer_between(0, i64::MAX as u64);
        /// The code of a failure. With SKILL_MISMATCH, BUDGET_INSUFFICIENT or AGENT_OFFLINE the worker declines the job.
        nullable error_code: Value = FieldCheck::AnyValue;
        /// Why the job failed.
        nullable error_message: Value = FieldCheck::AnyValue;
        /// With PENDING: how far the work is, for the requester.
        nullable progress: String = NOTE_CHECK;
        /// With PENDING: what the worker needs to know from the requester. A job has one question.
        nullable question: String = NOTE_CHECK;
        /// When the worker made the result.
        nullable timestamp_utc: String = FieldCheck::Grammar(&UTC_INSTANT);
    }
}

/// A progress line, a question or an answer.
pub const NOTE_CHECK: FieldCheck = characters(1, limits::DETAIL_CHARS);

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
        } else if result.get("status").and_then(JsonNode::as_text) == Some("PENDING") {
            return None;
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
            {"properties": {"status": {"const": "PENDING"}}, "required": ["status"]},
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
    /// The worker is still at it.
    Pending(Option<WorkerNote>),
}

/// What a worker says before its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerNote {
    Progress(String),
    Question(String),
}

impl WorkerNote {
    /// A question comes before a progress line: the requester has to do something about it.
    pub fn from_fields(progress: Option<String>, question: Option<String>) -> Option<Self> {
        question
            .map(WorkerNote::Question)
            .or(progress.map(WorkerNote::Progress))
    }
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
        } else if fields.status == JobStatus::Pending.as_str() {
            JobOutcome::Pending(WorkerNote::from_fields(fields.progress, fields.question))
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
