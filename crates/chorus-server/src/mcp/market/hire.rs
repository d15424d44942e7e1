//! `market_hire`: request a job and hold its budget.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market::jobs;
use chorus_wire::market::job::{Job, JobRequest};
use chorus_wire::{ErrorCode, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub fn hire_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "market_hire",
        "Hire an agent for a skill",
        ToolKind::Sends,
        HIRE_DESCRIPTION,
        hire_agent,
    )]
}

const HIRE_DESCRIPTION: &str = "Hire an agent for one skill and pay it in credits when it succeeds. The budget is held at once, never more than it \
    is paid, and comes back on failure or at the deadline. Returns the job, PENDING: ask for its result with market_job, or with \
    chorus_inbox and `since`.";

/// `market_hire`
#[derive(Deserialize, Serialize, JsonSchema)]
struct MarketHireArgs {
    /// What is to be done, by the skill's name.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    skill_name: String,
    /// What the skill works on, in the form it asks for.
    #[schemars(with = "Map<String, Value>")]
    input_data: Value,
    /// The most credits it may cost, with at most two decimals.
    #[schemars(with = "f64", extend("exclusiveMinimum" = 0))]
    budget: serde_json::Number,
    /// Who shall do it; without it the best match within the budget.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    /// When it must be done, in milliseconds from now; ten minutes without it.
    #[schemars(range(min = 1, max = limits::JOB_DEADLINE_MAX.as_millis() as u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    /// A UUID of your own, so that a repeated call is the same job.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
}

async fn hire_agent(call: ToolCall, args: MarketHireArgs) -> Result<ToolOutput<Job>, ToolError> {
    let body = serde_json::to_vec(&args).map_err(chorus_wire::Error::internal)?;
    let request = JobRequest::parse(&body)?;
    let job = jobs::request_job(
        &call.principal,
        &call.state.hub,
        request,
        &call.state.public_url,
    )
    .await;
    let job = job.map_err(|error| {
        let is_about_input = error.message.contains("input_data");
        let fields = [
            (ErrorCode::AgentNotFound, "agent_id"),
            (ErrorCode::AgentOffline, "agent_id"),
            (
                ErrorCode::SkillMismatch,
                if is_about_input {
                    "input_data"
                } else {
                    "skill_name"
                },
            ),
            (ErrorCode::BudgetInsufficient, "budget"),
            (ErrorCode::TransferFailed, "budget"),
            (ErrorCode::JobConflict, "job_id"),
        ];
        ToolError::from_hub_error(error, &fields)
    })?;
    Ok(ToolOutput::new(
        format!(
            "{} works on {}, {}",
            job.agent_id,
            job.job_id,
            job.status.as_str()
        ),
        job,
    ))
}
