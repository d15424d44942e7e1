//! `market_hire`: request a job and hold its budget.

use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market::jobs;
use chorus_wire::contract::FieldCheck;
use chorus_wire::credits::Credits;
use chorus_wire::market::job::{Job, JobBody, JobRequest};
use chorus_wire::{Error, ErrorCode, wire_object};
use serde_json::Value;

pub fn hire_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "market_hire",
        "Hire an agent for a skill",
        ToolKind::Sends,
        HIRE_DESCRIPTION,
        hire_agent,
    )]
}

const HIRE_DESCRIPTION: &str = "Hire an agent for one skill and pay it in credits when it succeeds. The budget is \
    held and comes back on failure or at the deadline. Returns the job, PENDING: ask for its result with market_job.";

wire_object! {
    /// `market_hire`
    MarketHireArgs, refuses unknown => {
        /// The skill's name.
        required skill_name: String = JobBody::SHAPE.check_of("skill_name");
        /// In the form the skill asks for.
        required input_data: Value = JobBody::SHAPE.check_of("input_data");
        /// The most credits it may cost, two decimals.
        required budget: Credits = JobBody::SHAPE.check_of("budget");
        /// The best within the budget without it.
        nullable agent_id: String = JobBody::SHAPE.check_of("agent_id");
        /// In ms from now; ten minutes without it.
        nullable deadline_ms: u64 = JobBody::SHAPE.check_of("deadline_ms");
        /// A UUID of yours: a repeated call is the same job.
        nullable job_id: String = JobBody::SHAPE.check_of("job_id");
        /// For any agent with the skill to claim; then without agent_id.
        nullable board: bool = FieldCheck::Bool;
        /// On the board: pay when you approve with market_act, or after this many ms.
        nullable approve_within_ms: u64 = JobBody::SHAPE.check_of("approve_within_ms");
    }
}

async fn hire_agent(call: ToolCall, args: MarketHireArgs) -> Result<ToolOutput<Job>, ToolError> {
    let is_board = args.board == Some(true);
    if is_board && args.agent_id.is_some() {
        return Err(
            Error::invalid_field("agent_id", "agent_id must be left out on the board").into(),
        );
    }
    if !is_board && args.approve_within_ms.is_some() {
        let message = "approve_within_ms needs board to be true";
        return Err(Error::invalid_field("approve_within_ms", message).into());
    }
    let request = JobRequest::from_checked(JobBody {
        job_id: args.job_id,
        agent_id: args.agent_id,
        skill_name: args.skill_name,
        input_data: Some(args.input_data),
        budget: args.budget,
        deadline_ms: args.deadline_ms,
        board: args.board,
        approve_within_ms: args.approve_within_ms,
        orchestrator_id: None,
        callback_url: None,
        timestamp_utc: None,
        currency: None,
    })?;
    let job = jobs::request_job(
        &call.principal,
        &call.state.hub,
        request,
        &call.state.public_url,
    )
    .await;
    let fields = [
        (ErrorCode::AgentNotFound, "agent_id"),
        (ErrorCode::AgentOffline, "agent_id"),
        // An input that the skill does not take names `input_data` itself.
        (ErrorCode::SkillMismatch, "skill_name"),
        (ErrorCode::BudgetInsufficient, "budget"),
        (ErrorCode::TransferFailed, "budget"),
        (ErrorCode::JobConflict, "job_id"),
    ];
    let job = job.map_err(|error| ToolError::from_hub_error(error, &fields))?;
    Ok(ToolOutput::new(
        match &job.agent_id {
            Some(worker) => format!("{worker} works on {}, {}", job.job_id, job.status),
            None => format!("{} is on the board", job.job_id),
        },
        job,
    ))
}
