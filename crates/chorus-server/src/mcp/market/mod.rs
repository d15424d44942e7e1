//! The tools of the market: search skills, hire, follow jobs, report results, read the balance.

mod account;
mod discover;
mod hire;
mod jobs;

use super::tool::ToolDefinition;
use super::tool_call::ToolCall;

pub fn market_tools() -> Vec<ToolDefinition<ToolCall>> {
    [
        discover::discover_tools(),
        hire::hire_tools(),
        jobs::job_tools(),
        account::account_tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
