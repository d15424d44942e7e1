//! `market_job`, `market_act` and `market_result`: follow jobs, act on them and report results.

use crate::mcp::fit_page;
use crate::mcp::shared_args::page_limit;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market::jobs;
use chorus_wire::contract::{FieldCheck, OPAQUE_ID};
use chorus_wire::credits::Credits;
use chorus_wire::list_page::ListPage;
use chorus_wire::market::job::{
    ANY_TEXT, Job, JobOutcome, JobResult, JobResultBody, JobStatus, NOTE_CHECK, OUTPUT_DATA_CHECK,
    WorkerNote,
};
use chorus_wire::{Error, ErrorCode, limits, wire_object};
use serde::Serialize;
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
            "market_act",
            "Act on a job",
            ToolKind::Sends,
            ACT_DESCRIPTION,
            act_on_job,
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

const JOB_DESCRIPTION: &str = "See where jobs stand: one by its job_id, with its timeline, or the latest you gave \
    (role orchestrator) or were given (role worker), newest first. As a worker find what waits for you with status \
    PENDING. With board: true the jobs you may claim, oldest first.";

const ACT_DESCRIPTION: &str = "Act on a job: claim one from the board (you must offer the skill), or as its hirer \
    cancel it, answer the worker's question with text, approve or reject (text says why) a delivery.";

const RESULT_DESCRIPTION: &str = "Report the result of a job you were hired for: SUCCESS with output_data, and you \
    are paid; or FAILURE with error_message, and the budget goes back; error_code SKILL_MISMATCH declines at no cost. \
    PENDING reports progress or asks one question.";

wire_object! {
    /// `market_job`
    MarketJobArgs, refuses unknown => {
        /// One job; then nothing else.
        nullable job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// Both without it.
        nullable role: String = FieldCheck::OneOf(&["orchestrator", "worker"]);
        /// Only these.
        nullable status: JobStatus = FieldCheck::OneOf(JobStatus::TEXTS);
        /// 50 without it.
        nullable limit: usize = page_limit(limits::JOBS_PAGE);
        /// The board instead of yours.
        nullable board: bool = FieldCheck::Bool;
        /// Older than this job_id, on the board newer.
        nullable before: String = FieldCheck::Grammar(&OPAQUE_ID);
    }
}

/// Jobs, newest first.
#[derive(Serialize, ToSchema)]
struct JobPage {
    jobs: Vec<Job>,
    /// There may be older ones; go on with `before`.
    more: bool,
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
    let limit = args.limit.unwrap_or(limits::TOOL_PAGE_DEFAULT);
    if args.board == Some(true) {
        let found = jobs::list_board(principal, hub, None, args.before.as_deref(), limit)
            .await
            .map_err(|error| ToolError::from(error).about_field("before"))?;
        return Ok(describe_page(found));
    }
    if let Some(before) = &args.before {
        // Fails for a job of other parties, whose existence must not show.
        jobs::get_job(principal, hub, before)
            .await
            .map_err(|error| ToolError::from(error).about_field("before"))?;
    }
    let found = jobs::list_jobs(
        principal,
        hub,
        args.role.as_deref(),
        args.status.map(JobStatus::as_str),
        args.before.as_deref(),
        limit,
    )
    .await?;
    Ok(describe_page(found))
}

fn describe_page(page: ListPage<Job>) -> ToolOutput<JobPage> {
    let mut jobs = page.rows;
    let more = fit_page::keep_first_fitting(&mut jobs) || page.next.is_some();
    ToolOutput::new(format!("{} jobs", jobs.len()), JobPage { jobs, more })
}

wire_object! {
    /// `market_act`
    MarketActArgs, refuses unknown => {
        /// The job.
        required job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// What to do.
        required act: String = FieldCheck::OneOf(&["claim", "cancel", "answer", "approve", "reject"]);
        /// The answer, or why you reject.
        nullable text: String = NOTE_CHECK;
    }
}

async fn act_on_job(call: ToolCall, args: MarketActArgs) -> Result<ToolOutput<Job>, ToolError> {
    let principal = &call.principal;
    let hub = &call.state.hub;
    let id = &args.job_id;
    let done = match (args.act.as_str(), args.text) {
        ("claim", _) => jobs::claim_job(principal, hub, id).await,
        ("cancel", _) => jobs::cancel_job(principal, hub, id).await,
        ("approve", _) => jobs::approve_job(principal, hub, id).await,
        ("reject", reason) => jobs::reject_job(principal, hub, id, reason).await,
        (_, Some(answer)) => jobs::answer_question(principal, hub, id, &answer).await,
        (_, None) => Err(Error::invalid_field("text", "text must have the answer")),
    };
    let job = done.map_err(|error| {
        let is_about_job = error.field.is_none();
        let error = ToolError::from(error);
        if is_about_job {
            error.about_field("job_id")
        } else {
            error
        }
    })?;
    Ok(ToolOutput::new(
        format!("{} is {}", job.job_id, job.state),
        job,
    ))
}

wire_object! {
    /// `market_result`
    MarketResultArgs, refuses unknown => {
        /// The job.
        required job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// PENDING for a note before the end.
        required status: JobStatus = JobResultBody::SHAPE.check_of("status");
        /// In the form the skill promises.
        nullable output_data: Value = OUTPUT_DATA_CHECK;
        /// At most the budget; the skill's price without it.
        nullable execution_cost: Credits = FieldCheck::Credits { zero: true };
        /// How long it took.
        nullable execution_time_ms: u64 = JobResultBody::SHAPE.check_of("execution_time_ms");
        /// In capitals, such as EXECUTION_ERROR.
        nullable error_code: String = ANY_TEXT;
        /// Why, in a sentence.
        nullable error_message: String = ANY_TEXT;
        /// With PENDING: how far you are.
        nullable progress: String = NOTE_CHECK;
        /// With PENDING: what you must know, once a job. The answer comes as a job event.
        nullable question: String = NOTE_CHECK;
    }
}

async fn report_result(
    call: ToolCall,
    args: MarketResultArgs,
) -> Result<ToolOutput<Job>, ToolError> {
    let job_result = JobResult {
        job_id: None,
        agent_id: None,
        outcome: match args.status {
            JobStatus::Success => JobOutcome::Success {
                output_data: args.output_data.unwrap_or_default(),
                execution_cost: args.execution_cost,
            },
            JobStatus::Failure => JobOutcome::failure(args.error_code, args.error_message),
            JobStatus::Pending => {
                JobOutcome::Pending(WorkerNote::from_fields(args.progress, args.question))
            }
        },
        execution_time_ms: args.execution_time_ms,
    };
    let fields = [
        (ErrorCode::NotFound, "job_id"),
        (ErrorCode::JobClosed, "job_id"),
        (ErrorCode::Forbidden, "job_id"),
        (ErrorCode::BudgetInsufficient, "execution_cost"),
    ];
    let job = jobs::report_result(&call.principal, &call.state.hub, &args.job_id, job_result).await;
    let job = job.map_err(|error| ToolError::from_hub_error(error, &fields))?;
    Ok(ToolOutput::new(
        format!("{} is {}", job.job_id, job.state),
        job,
    ))
}
