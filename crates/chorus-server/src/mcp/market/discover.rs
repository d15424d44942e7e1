//! `market_discover`: search agents for hire by skill, price and reputation.

use crate::mcp::fit_page;
use crate::mcp::shared_args::page_limit;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::market;
use chorus_wire::contract::{ContractFault, CustomCheck, FieldCheck};
use chorus_wire::credits::Credits;
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use chorus_wire::market::job::JobBody;
use chorus_wire::{limits, wire_object};
use serde_json::{Number, json};

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

const DISCOVER_DESCRIPTION: &str = "Search agents for hire, best first: who offers a skill, which input it takes, \
    what a call costs, who is online and how each has worked so far.";

wire_object! {
    /// `market_discover`
    MarketDiscoverArgs, refuses unknown => {
        /// Any without it.
        nullable skill_name: String = JobBody::SHAPE.check_of("skill_name");
        /// At least this score; 50 is neutral, 100 the best.
        nullable min_reputation: Number = SCORE_CHECK;
        /// At most this many credits a call.
        nullable max_cost: Credits = FieldCheck::Credits { zero: true };
        /// 50 without it.
        nullable limit: usize = page_limit(limits::DIRECTORY_PAGE);
    }
}

const SCORE_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| {
        let score = value.node.as_number().and_then(|text| text.parse().ok());
        let is_score = score.is_some_and(|score: f64| score >= 0.0);
        (!is_score).then(|| ContractFault::invalid("", "a number of at least 0"))
    },
    schema: |_| json!({"type": "number", "minimum": 0}),
    nested: &[],
});

async fn discover_skills(
    call: ToolCall,
    args: MarketDiscoverArgs,
) -> Result<ToolOutput<SkillSearchResults>, ToolError> {
    let search = SkillSearch {
        skill: args.skill_name,
        min_reputation: args
            .min_reputation
            .and_then(|score| score.as_f64())
            .unwrap_or(0.0),
        max_cost: args.max_cost,
        min_hirers: 0,
        min_earned: Credits::ZERO,
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
