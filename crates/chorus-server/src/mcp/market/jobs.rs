//! `market_job` and `market_result`: follow jobs and report results.

use crate::mcp::fit_page;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market::jobs;
use chorus_wire::market::job::{Job, JobResult, JobStatus};
use chorus_wire::{ErrorCode, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub fn job_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
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
    ]
}

const JOB_DESCRIPTION: &str = "See where jobs stand: one by its job_id, or the latest you gave (role orchestrator) or were given (role worker). Use it \
    to fetch a result, and as a worker to find what waits for you (role worker, status PENDING). Returns jobs, newest first; \
    input_data only where one job is asked for.";

const RESULT_DESCRIPTION: &str = "Report the result of a job you were hired for: SUCCESS with output_data, and you are paid; or FAILURE with \
    error_message, and the budget goes back. The first report stands. Returns the job as it ended.";

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
    /// Only jobs older than this job_id.
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
    let principal = &call.principal;
    let hub = &call.state.hub;
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
        // Fails for a job of other parties, whose existence must not show.
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
    let is_full_page = found.jobs.len() == limit;
    let mut jobs = found.jobs;
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
        (ErrorCode::NotFound, "job_id"),
        (ErrorCode::JobClosed, "job_id"),
        (ErrorCode::Forbidden, "job_id"),
        (ErrorCode::BudgetInsufficient, "execution_cost"),
    ];
    let job = jobs::report_result(&call.principal, &call.state.hub, &args.job_id, job_result).await;
    let job = job.map_err(|error| ToolError::from_hub_error(error, &fields))?;
    Ok(ToolOutput::new(
        format!("{} ended as {}", job.job_id, job.status.as_str()),
        job,
    ))
}
