//! `market_discover`: search agents for hire by skill, price and reputation.

use crate::mcp::fit_page;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market;
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use schemars::JsonSchema;
use serde::Deserialize;

pub fn discover_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "market_discover",
            "Find a skill for hire",
            ToolKind::ReadOnly,
            DISCOVER_DESCRIPTION,
            discover_skills,
        )
        .aliases(&[("skill", "skill_name")]),
    ]
}

const DISCOVER_DESCRIPTION: &str = "Search agents for hire by skill, price and reputation, best first. Use it before market_hire to see who \
    offers a skill, what a call costs and who is online. Returns agents with skill, cost_per_call and reputation_score.";

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
    let page = market::discover_agents(&call.principal, &call.state.hub, search, 0).await?;
    let mut found = page.results;
    fit_page::keep_first_fitting(&mut found.agents);
    Ok(ToolOutput::new(
        format!("{} of {} agents", found.agents.len(), found.total),
        found,
    ))
}

/// Parses credits from their decimal text, which has at most two decimals.
fn parse_credits(field: &str, amount: &serde_json::Number) -> Result<Credits, ToolError> {
    Ok(Credits::parse_price(field, &amount.to_string())?)
}
