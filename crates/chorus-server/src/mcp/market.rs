//! The tools of the market: find a skill, hire, follow a job, report a result, see what is left.

use super::fit_page;
use super::tool::{ToolDefinition, ToolKind, ToolOutput};
use super::tool_call::ToolCall;
use super::tool_error::ToolError;
use chorus_hub::market::{self, jobs};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use chorus_wire::market::job::{Job, JobRequest, JobResult, JobStatus};
use chorus_wire::market::transfer::OwnerAccount;
use chorus_wire::{Code, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub fn market_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "market_discover",
            "Find a skill for hire",
            ToolKind::ReadOnly,
            DISCOVER_DESCRIPTION,
            discover_skills,
        )
        .aliases(&[("skill", "skill_name")]),
        ToolDefinition::new(
            "market_hire",
            "Hire an agent for a skill",
            ToolKind::Sends,
            HIRE_DESCRIPTION,
            hire_agent,
        ),
        ToolDefinition::new(
            "market_job",
            "Follow jobs",
            ToolKind::ReadOnly,
            JOB_DESCRIPTION,
            get_jobs,
        ),
        ToolDefinition::new(
            "market_result",
            "Report a job's result",
            ToolKind::Idempotent,
            RESULT_DESCRIPTION,
            report_result,
        ),
        ToolDefinition::new(
            "market_balance",
            "See credits",
            ToolKind::ReadOnly,
            BALANCE_DESCRIPTION,
            get_balance,
        ),
    ]
}

const DISCOVER_DESCRIPTION: &str = "Search agents for hire by skill, price and reputation, best first. Use it before market_hire to see who \
    offers a skill, what a call costs and who is online. Returns agents with skill, cost_per_call and reputation_score.";

const HIRE_DESCRIPTION: &str = "Hire an agent for one skill and pay it in credits when it succeeds. The budget is held at once, never more than it \
    is paid, and all of it comes back on failure or at the deadline. Give a job_id of your own if you may have to repeat the call: the \
    same job is then asked for once. Returns the job, PENDING: ask for its result with market_job, or with chorus_inbox and `since`, \
    where it comes as a job_result.";

const JOB_DESCRIPTION: &str = "See where jobs stand: one by its job_id, or the latest you gave (role orchestrator) or were given (role worker). Use it \
    to fetch a result, and as a worker to find what waits for you (role worker, status PENDING). Returns jobs, newest first, \
    and whether there is `more`; input_data only where one job is asked for.";

const RESULT_DESCRIPTION: &str = "Report the result of a job you were hired for: SUCCESS with output_data, and you are paid; or FAILURE with \
    error_message, and the budget goes back. The first report stands. Returns the job as it ended.";

const BALANCE_DESCRIPTION: &str = "See how many credits your owner has, and how many are held for jobs that are still open. Use it before \
    market_hire.";

/// Credits as they are written: to two decimals.
fn parse_credits(field: &str, amount: &serde_json::Number) -> Result<Credits, ToolError> {
    Ok(Credits::parse_price(field, &amount.to_string())?)
}

/// `market_discover`
#[derive(Deserialize, JsonSchema)]
struct MarketDiscoverArgs {
    /// The skill's name; without it agents of any skill.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    skill_name: Option<String>,
    /// Only agents with at least this score; 50 is neutral, 100 the best.
    #[schemars(range(min = 0))]
    min_reputation: Option<f64>,
    /// Only agents that ask for at most this many credits a call.
    #[schemars(with = "Option<f64>", range(min = 0))]
    max_cost: Option<serde_json::Number>,
    /// At most this many; 50 without it.
    #[schemars(range(min = 1, max = limits::DIRECTORY_PAGE))]
    limit: Option<usize>,
}

async fn discover_skills(
    call: ToolCall,
    args: MarketDiscoverArgs,
) -> Result<ToolOutput<SkillSearchResults>, ToolError> {
    let search = SkillSearch {
        skill: args.skill_name.filter(|name| !name.contains('\0')),
        min_reputation: args.min_reputation.unwrap_or(0.0),
        max_cost: args
            .max_cost
            .as_ref()
            .map(|cost| parse_credits("max_cost", cost))
            .transpose()?,
        limit: args.limit.unwrap_or(limits::TOOL_PAGE_DEFAULT),
    };
    let mut found = market::discover_agents(&call.principal, &call.state.hub, search).await?;
    fit_page::keep_first_fitting(&mut found.agents);
    Ok(ToolOutput::new(
        format!("{} of {} agents", found.agents.len(), found.total),
        found,
    ))
}

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
            (Code::AgentNotFound, "agent_id"),
            (Code::AgentOffline, "agent_id"),
            (
                Code::SkillMismatch,
                if is_about_input {
                    "input_data"
                } else {
                    "skill_name"
                },
            ),
            (Code::BudgetInsufficient, "budget"),
            (Code::TransferFailed, "budget"),
            (Code::JobConflict, "job_id"),
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

/// `market_job`
#[derive(Deserialize, JsonSchema)]
struct MarketJobArgs {
    /// One job; everything else is then left out.
    #[schemars(length(min = 1, max = 128))]
    job_id: Option<String>,
    /// Which side you are on; both without it.
    role: Option<JobRole>,
    /// Only jobs that stand so.
    #[schemars(with = "Option<JobStatusFilter>")]
    status: Option<JobStatus>,
    /// At most this many; 50 without it.
    #[schemars(range(min = 1, max = limits::JOBS_PAGE))]
    limit: Option<usize>,
    /// Only jobs older than this one: the job_id of the last that you were shown.
    #[schemars(length(min = 1, max = 128))]
    before: Option<String>,
}

/// Jobs, newest first.
#[derive(Serialize, ToSchema)]
struct JobPage {
    jobs: Vec<Job>,
    /// There may be older ones; go on with `before`.
    more: bool,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum JobRole {
    Orchestrator,
    Worker,
}

/// The document's words for where a job stands.
#[derive(JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(
    dead_code,
    reason = "it describes an argument; wire/market/job.rs reads it"
)]
enum JobStatusFilter {
    Pending,
    Success,
    Failure,
}

async fn get_jobs(call: ToolCall, args: MarketJobArgs) -> Result<ToolOutput<JobPage>, ToolError> {
    let (principal, hub) = (&call.principal, &call.state.hub);
    if let Some(id) = &args.job_id {
        let job = jobs::get_job(principal, hub, id)
            .await
            .map_err(|error| ToolError::from(error).about_field("job_id"))?;
        return Ok(ToolOutput::new(
            format!("{id} is {}", job.status.as_str()),
            JobPage {
                jobs: vec![job],
                more: false,
            },
        ));
    }
    if let Some(before) = &args.before {
        // Of a stranger's job it is not even said that it is there.
        jobs::get_job(principal, hub, before)
            .await
            .map_err(|error| ToolError::from(error).about_field("before"))?;
    }
    let role = args.role.map(|role| match role {
        JobRole::Orchestrator => "orchestrator",
        JobRole::Worker => "worker",
    });
    let limit = args.limit.unwrap_or(limits::TOOL_PAGE_DEFAULT);
    let found = jobs::list_jobs(
        principal,
        hub,
        role,
        args.status.map(JobStatus::as_str),
        args.before.as_deref(),
        limit,
    )
    .await?;
    let (is_full_page, mut jobs) = (found.jobs.len() == limit, found.jobs);
    let more = fit_page::keep_first_fitting(&mut jobs) || is_full_page;
    Ok(ToolOutput::new(
        format!("{} jobs", jobs.len()),
        JobPage { jobs, more },
    ))
}

/// `market_result`
#[derive(Deserialize, Serialize, JsonSchema)]
struct MarketResultArgs {
    /// The job you were given.
    #[schemars(length(min = 1, max = 128))]
    job_id: String,
    /// SUCCESS or FAILURE.
    #[schemars(with = "ReportedJobStatus")]
    status: JobStatus,
    /// What came out, in the form the skill promises.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_data: Option<Value>,
    /// What it cost, at most the budget; the price of the skill without it.
    #[schemars(with = "Option<f64>", range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_cost: Option<serde_json::Number>,
    /// How long it took, in milliseconds.
    #[schemars(range(min = 0, max = limits::SAFE_INTEGER_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_time_ms: Option<u64>,
    /// Why it failed, in capitals, such as EXECUTION_ERROR.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    /// Why it failed, in a sentence.
    #[schemars(length(max = limits::DETAIL_CHARS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

/// How a job can be reported to have ended.
#[derive(JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(
    dead_code,
    reason = "it describes an argument; wire/market/job.rs reads it"
)]
enum ReportedJobStatus {
    Success,
    Failure,
}

async fn report_result(
    call: ToolCall,
    args: MarketResultArgs,
) -> Result<ToolOutput<Job>, ToolError> {
    let body = serde_json::to_vec(&args).map_err(chorus_wire::Error::internal)?;
    let job_result = JobResult::parse(&body)?;
    let fields = [
        (Code::NotFound, "job_id"),
        (Code::JobClosed, "job_id"),
        (Code::Forbidden, "job_id"),
        (Code::BudgetInsufficient, "execution_cost"),
    ];
    let job = jobs::report_result(&call.principal, &call.state.hub, &args.job_id, job_result).await;
    let job = job.map_err(|error| ToolError::from_hub_error(error, &fields))?;
    Ok(ToolOutput::new(
        format!("{} ended as {}", job.job_id, job.status.as_str()),
        job,
    ))
}

/// `market_balance`
#[derive(Deserialize, JsonSchema)]
struct MarketBalanceArgs {
    /// Your owner's name; your key's own without it.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    owner_id: Option<String>,
}

async fn get_balance(
    call: ToolCall,
    args: MarketBalanceArgs,
) -> Result<ToolOutput<OwnerAccount>, ToolError> {
    let account =
        market::get_account(&call.principal, &call.state.hub, args.owner_id.as_deref()).await;
    let account = account.map_err(|error| ToolError::from(error).about_field("owner_id"))?;
    Ok(ToolOutput::new(
        format!("{} credits, {} held", account.balance, account.held),
        account,
    ))
}
