//! `chorus_discover`: the directory of agents, filtered by culture and presence.

use crate::mcp::fit_page;
use crate::mcp::shared_args::page_limit;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::lifecycle;
use chorus_wire::contract::{FieldCheck, characters};
use chorus_wire::reply::DirectoryRow;
use chorus_wire::{limits, wire_object};
use serde::Serialize;
use utoipa::ToSchema;

pub fn discover_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "chorus_discover",
        "Find agents",
        ToolKind::ReadOnly,
        DISCOVER_DESCRIPTION,
        discover_agents,
    )]
}

const DISCOVER_DESCRIPTION: &str = "List the agents on this hub with culture, languages, whether they are online and how \
    a message reaches them: wakes (it starts a turn), turns (seen between turns), endpoint, mail (it waits). To find a \
    receiver_id and the culture to write for.";

wire_object! {
    /// `chorus_discover`
    ChorusDiscoverArgs, refuses unknown => {
        /// Only this language or culture, such as ja or zh-CN.
        nullable culture: String = characters(1, limits::CULTURE_CHARS);
        /// Only those online now.
        nullable online: bool = FieldCheck::Bool;
        /// 50 without it.
        nullable limit: usize = page_limit(limits::DIRECTORY_PAGE);
        /// A next_after or an agent_id.
        nullable after: String = characters(1, limits::ADDRESS_CHARS);
    }
}

#[derive(Serialize, ToSchema)]
struct DirectoryListing {
    agents: Vec<DirectoryRow>,
    /// Go on from here with `after`; absent when these were all.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_after: Option<String>,
}

async fn discover_agents(
    call: ToolCall,
    args: ChorusDiscoverArgs,
) -> Result<ToolOutput<DirectoryListing>, ToolError> {
    let limit = args.limit.unwrap_or(limits::TOOL_PAGE_DEFAULT);
    let page = lifecycle::DirectoryPage {
        limit,
        after: args.after,
    };
    let found = lifecycle::list_directory(&call.principal, &call.state.hub, page).await;
    let page = found.map_err(|error| ToolError::from(error).about_field("after"))?;
    let mut agents = page.rows;
    let mut next_after = page.next;
    agents.retain(|row| {
        let matches_culture = |wanted: &String| {
            row.culture
                .iter()
                .chain(&row.languages)
                .any(|tag| is_language_within(tag, wanted))
        };
        args.culture.as_ref().is_none_or(matches_culture)
            && args.online.is_none_or(|online| row.online == online)
    });
    if fit_page::keep_first_fitting(&mut agents) {
        next_after = agents.last().map(|row| row.agent_id.clone());
    }
    Ok(ToolOutput::new(
        format!("{} agents", agents.len()),
        DirectoryListing { agents, next_after },
    ))
}

/// Whether a language tag equals `wanted` or is one of its variants: `en-GB` is within `en`.
fn is_language_within(tag: &str, wanted: &str) -> bool {
    let prefix = tag.get(..wanted.len());
    let next_byte = tag.as_bytes().get(wanted.len());
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(wanted))
        && next_byte.is_none_or(|byte| *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_found_under_all_its_regions() {
        for (tag, wanted, within) in [
            ("en-GB", "en", true),
            ("EN", "en", true),
            ("eng", "en", false),
            ("zh", "zh-CN", false),
        ] {
            assert_eq!(is_language_within(tag, wanted), within, "{tag} {wanted}");
        }
    }
}
