//! The tools of the market: search and offer skills, hire, follow jobs and act on them, report results, pay.

mod account;
mod discover;
mod hire;
mod jobs;
mod offer;

use super::tool::ToolDefinition;
use super::tool_call::ToolCall;

pub fn market_tools() -> Vec<ToolDefinition<ToolCall>> {
    [
        discover::discover_tools(),
        hire::hire_tools(),
        jobs::job_tools(),
        offer::offer_tools(),
        account::account_tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
