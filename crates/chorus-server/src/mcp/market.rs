//! The tools of the market: find a skill, hire, follow a job, report a result, see what is left.

use super::call::Call;
use super::page;
use super::refusal::Refusal;
use super::tool::{Nature, Said, Verb};
use chorus_hub::market::{self, jobs};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::discover::{Found, Search};
use chorus_wire::market::job::{Job, JobRequest, JobResult, Status};
use chorus_wire::market::transfer::Account;
use chorus_wire::{Code, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

pub fn verbs() -> Vec<Verb<Call>> {
    vec![
        Verb::new(
            "market_discover",
            "Find a skill for hire",
            Nature::Reads,
            DISCOVER,
            discover,
        )
        .also(&[("skill", "skill_name")]),
        Verb::new(
            "market_hire",
            "Hire an agent for a skill",
            Nature::Speaks,
            HIRE,
            hire,
        ),
        Verb::new("market_job", "Follow jobs", Nature::Reads, JOB, job),
        Verb::new(
            "market_result",
            "Report a job's result",
            Nature::Settles,
            RESULT,
            result,
        ),
        Verb::new(
            "market_balance",
            "See credits",
            Nature::Reads,
            BALANCE,
            balance,
        ),
    ]
}

const DISCOVER: &str = "Search agents for hire by skill, price and reputation, best first. Use it before market_hire to see who \
    offers a skill, what a call costs and who is online. Returns agents with skill, cost_per_call and reputation_score.";

const HIRE: &str = "Hire an agent for one skill and pay it in credits when it succeeds. The budget is held at once, never more than it \
    is paid, and all of it comes back on failure or at the deadline. Give a job_id of your own if you may have to repeat the call: the \
    same job is then asked for once. Returns the job, PENDING: ask for its result with market_job, or with chorus_inbox and `since`, \
    where it comes as a job_result.";

const JOB: &str = "See where jobs stand: one by its job_id, or the latest you gave (role orchestrator) or were given (role worker). Use it \
    to fetch a result, and as a worker to find what waits for you (role worker, status PENDING). Returns jobs, newest first, \
    and whether there is `more`; input_data only where one job is asked for.";

const RESULT: &str = "Report the result of a job you were hired for: SUCCESS with output_data, and you are paid; or FAILURE with \
    error_message, and the budget goes back. The first report stands. Returns the job as it ended.";

const BALANCE: &str = "See how many credits your owner has, and how many are held for jobs that are still open. Use it before \
    market_hire.";

/// Credits as they are written: to two decimals.
fn credits(field: &str, amount: &serde_json::Number) -> Result<Credits, Refusal> {
    Ok(Credits::parse_price(field, &amount.to_string())?)
}

/// `market_discover`
#[derive(Deserialize, JsonSchema)]
struct DiscoverArgs {
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

async fn discover(call: Call, args: DiscoverArgs) -> Result<Said<Found>, Refusal> {
    let search = Search {
        skill: args.skill_name.filter(|name| !name.contains('\0')),
        min_reputation: args.min_reputation.unwrap_or(0.0),
        max_cost: args
            .max_cost
            .as_ref()
            .map(|cost| credits("max_cost", cost))
            .transpose()?,
        limit: args.limit.unwrap_or(limits::TOOL_PAGE),
    };
    let mut found = market::discover(&call.who, &call.doors.hub, search).await?;
    page::first(&mut found.agents);
    Ok(Said::new(
        format!("{} of {} agents", found.agents.len(), found.total),
        found,
    ))
}

/// `market_hire`
#[derive(Deserialize, Serialize, JsonSchema)]
struct HireArgs {
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
    #[schemars(range(min = 1, max = limits::JOB_DEADLINE_MOST.as_millis() as u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    /// A UUID of your own, so that a repeated call is the same job.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
}

async fn hire(call: Call, args: HireArgs) -> Result<Said<Job>, Refusal> {
    let body = serde_json::to_vec(&args).map_err(chorus_wire::Error::internal)?;
    let asked = JobRequest::parse(&body)?;
    let job = jobs::request(&call.who, &call.doors.hub, asked, &call.doors.public_url).await;
    let job = job.map_err(|error| {
        let input = error.message.contains("input_data");
        let fields = [
            (Code::AgentNotFound, "agent_id"),
            (Code::AgentOffline, "agent_id"),
            (
                Code::SkillMismatch,
                if input { "input_data" } else { "skill_name" },
            ),
            (Code::BudgetInsufficient, "budget"),
            (Code::TransferFailed, "budget"),
            (Code::JobConflict, "job_id"),
        ];
        Refusal::told(error, &fields)
    })?;
    Ok(Said::new(
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
struct JobArgs {
    /// One job; everything else is then left out.
    #[schemars(length(min = 1, max = 128))]
    job_id: Option<String>,
    /// Which side you are on; both without it.
    role: Option<Role>,
    /// Only jobs that stand so.
    #[schemars(with = "Option<Standing>")]
    status: Option<Status>,
    /// At most this many; 50 without it.
    #[schemars(range(min = 1, max = limits::JOBS_PAGE))]
    limit: Option<usize>,
    /// Only jobs older than this one: the job_id of the last that you were shown.
    #[schemars(length(min = 1, max = 128))]
    before: Option<String>,
}

/// Jobs, newest first.
#[derive(Serialize, ToSchema)]
struct Listed {
    jobs: Vec<Job>,
    /// There may be older ones; go on with `before`.
    more: bool,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Role {
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
enum Standing {
    Pending,
    Success,
    Failure,
}

async fn job(call: Call, args: JobArgs) -> Result<Said<Listed>, Refusal> {
    let (who, hub) = (&call.who, &call.doors.hub);
    if let Some(id) = &args.job_id {
        let job = jobs::standing(who, hub, id)
            .await
            .map_err(|error| Refusal::from(error).about("job_id"))?;
        return Ok(Said::new(
            format!("{id} is {}", job.status.as_str()),
            Listed {
                jobs: vec![job],
                more: false,
            },
        ));
    }
    if let Some(before) = &args.before {
        // Of a stranger's job it is not even said that it is there.
        jobs::standing(who, hub, before)
            .await
            .map_err(|error| Refusal::from(error).about("before"))?;
    }
    let role = args.role.map(|role| match role {
        Role::Orchestrator => "orchestrator",
        Role::Worker => "worker",
    });
    let limit = args.limit.unwrap_or(limits::TOOL_PAGE);
    let found = jobs::list(
        who,
        hub,
        role,
        args.status.map(Status::as_str),
        args.before.as_deref(),
        limit,
    )
    .await?;
    let (full, mut jobs) = (found.jobs.len() == limit, found.jobs);
    let more = page::first(&mut jobs) || full;
    Ok(Said::new(
        format!("{} jobs", jobs.len()),
        Listed { jobs, more },
    ))
}

/// `market_result`
#[derive(Deserialize, Serialize, JsonSchema)]
struct ResultArgs {
    /// The job you were given.
    #[schemars(length(min = 1, max = 128))]
    job_id: String,
    /// SUCCESS or FAILURE.
    #[schemars(with = "Ended")]
    status: Status,
    /// What came out, in the form the skill promises.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_data: Option<Value>,
    /// What it cost, at most the budget; the price of the skill without it.
    #[schemars(with = "Option<f64>", range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_cost: Option<serde_json::Number>,
    /// How long it took, in milliseconds.
    #[schemars(range(min = 0, max = limits::WHOLE_NUMBER))]
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
enum Ended {
    Success,
    Failure,
}

async fn result(call: Call, args: ResultArgs) -> Result<Said<Job>, Refusal> {
    let body = serde_json::to_vec(&args).map_err(chorus_wire::Error::internal)?;
    let said = JobResult::parse(&body)?;
    let fields = [
        (Code::NotFound, "job_id"),
        (Code::JobClosed, "job_id"),
        (Code::Forbidden, "job_id"),
        (Code::BudgetInsufficient, "execution_cost"),
    ];
    let job = jobs::result(&call.who, &call.doors.hub, &args.job_id, said).await;
    let job = job.map_err(|error| Refusal::told(error, &fields))?;
    Ok(Said::new(
        format!("{} ended as {}", job.job_id, job.status.as_str()),
        job,
    ))
}

/// `market_balance`
#[derive(Deserialize, JsonSchema)]
struct BalanceArgs {
    /// Your owner's name; your key's own without it.
    #[schemars(length(min = 1, max = limits::LABEL_CHARS))]
    owner_id: Option<String>,
}

async fn balance(call: Call, args: BalanceArgs) -> Result<Said<Account>, Refusal> {
    let account = market::account(&call.who, &call.doors.hub, args.owner_id.as_deref()).await;
    let account = account.map_err(|error| Refusal::from(error).about("owner_id"))?;
    Ok(Said::new(
        format!("{} credits, {} held", account.balance, account.held),
        account,
    ))
}
