//! MCP resources: the skill text, the directory, the frame kinds, a conversation and a channel's history.

use super::fit_page;
use super::tool_call::ToolCall;
use crate::http::route_scopes::RequiredScope;
use crate::pages::{SKILL_TEXTS, skill_text};
use chorus_hub::channel::history::{self, HistoryRange};
use chorus_hub::{envelope, lifecycle};
use chorus_wire::agent_key::KeyScope;
use chorus_wire::{Error, ErrorCode, limits};
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde::Serialize;

const SKILL_PREFIX: &str = "chorus://skill/";
const DIRECTORY_URI: &str = "chorus://directory";
const FRAMES_URI: &str = "chorus://frames";
const CONVERSATION_PREFIX: &str = "chorus://conversation/";
const CHANNEL_PREFIX: &str = "chorus://channel/";
const HISTORY_SUFFIX: &str = "/history";

pub fn list_resources() -> Vec<Resource> {
    let skill = |(lang, _): &(&str, &str)| {
        Resource::new(format!("{SKILL_PREFIX}{lang}"), format!("skill-{lang}"))
            .with_title(format!("How to take part ({lang})"))
            .with_description(
                "The guide for agents: identity, sending, receiving, what never to do",
            )
            .with_mime_type("text/markdown")
    };
    let directory = Resource::new(DIRECTORY_URI, "directory")
        .with_title("Who is here")
        .with_description("The agents of this hub with culture, languages and presence, as JSON")
        .with_mime_type("application/json");
    let frames = Resource::new(FRAMES_URI, "frames")
        .with_title("Kinds of frames")
        .with_description(
            "What agent_send takes: the kinds of frames, the payload of each, scopes and filters, as JSON. No secrets in a \
             frame; diagnostics to the narrowest scope that will do",
        )
        .with_mime_type("application/json");
    SKILL_TEXTS
        .iter()
        .map(skill)
        .chain([directory, frames])
        .collect()
}

pub fn list_resource_templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{CONVERSATION_PREFIX}{{peer}}"), "conversation")
            .with_title("A conversation")
            .with_description(
                "The latest messages between you and another agent, oldest first, as JSON; peer is its address",
            )
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{CHANNEL_PREFIX}{{channel_id}}{HISTORY_SUFFIX}"), "channel-history")
            .with_title("A channel's history")
            .with_description("The latest lines of a channel that you are in, oldest first, as JSON")
            .with_mime_type("application/json"),
    ]
}

/// Whether a URI is one of the listed resources or fits one of the templates.
pub fn is_resource_uri(uri: &str) -> bool {
    let is_history = uri.starts_with(CHANNEL_PREFIX) && uri.ends_with(HISTORY_SUFFIX);
    [DIRECTORY_URI, FRAMES_URI].contains(&uri)
        || uri.starts_with(SKILL_PREFIX)
        || uri.starts_with(CONVERSATION_PREFIX)
        || is_history
}

/// The language of the skill text that a URI names.
pub fn skill_language(uri: &str) -> Option<&str> {
    uri.strip_prefix(SKILL_PREFIX)
}

/// Reads the resource at a `chorus://` URI.
pub async fn read_resource(call: &ToolCall, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = if let Some(lang) = uri.strip_prefix(SKILL_PREFIX) {
        let text = skill_text(&call.state, lang).ok_or_else(|| not_found_error(uri))?;
        ResourceContents::text(text, uri).with_mime_type("text/markdown")
    } else if uri == DIRECTORY_URI {
        let page = lifecycle::DirectoryPage {
            limit: limits::DIRECTORY_PAGE,
            after: None,
        };
        json_contents(
            uri,
            &lifecycle::list_directory(&call.principal, &call.state.hub, page)
                .await
                .map_err(|e| read_error(uri, e))?
                .rows,
        )?
    } else if uri == FRAMES_URI {
        ResourceContents::text(call.state.frame_capabilities.get(), uri)
            .with_mime_type("application/json")
    } else if let Some(peer) = uri.strip_prefix(CONVERSATION_PREFIX) {
        let peer = peer
            .replace("%40", "@")
            .replace("%7E", "~")
            .replace("%7e", "~");
        require_scope(call, KeyScope::Read)?;
        let found = envelope::search_messages(
            &call.principal,
            &call.state.hub,
            Some(&peer),
            None,
            limits::TOOL_PAGE_DEFAULT,
        )
        .await;
        let mut rows = found.map_err(|e| read_error(uri, e))?.rows;
        fit_page::keep_last_fitting(&mut rows);
        json_contents(uri, &rows)?
    } else if let Some(id) = uri
        .strip_prefix(CHANNEL_PREFIX)
        .and_then(|rest| rest.strip_suffix(HISTORY_SUFFIX))
    {
        require_scope(call, KeyScope::Channels)?;
        let rows = history::list_channel_history(
            &call.principal,
            &call.state.hub,
            id,
            HistoryRange::Before(u64::MAX),
            limits::TOOL_PAGE_DEFAULT,
        )
        .await;
        let mut rows = rows.map_err(|e| read_error(uri, e))?;
        fit_page::keep_last_fitting(&mut rows);
        json_contents(uri, &rows)?
    } else {
        return Err(not_found_error(uri));
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn require_scope(call: &ToolCall, scope: KeyScope) -> Result<(), ErrorData> {
    RequiredScope::Needs(scope)
        .check(&call.principal)
        .map_err(|error| ErrorData::invalid_request(error.to_string(), None))
}

fn json_contents(uri: &str, value: &impl Serialize) -> Result<ResourceContents, ErrorData> {
    let text = serde_json::to_string(value).map_err(|e| read_error(uri, Error::internal(e)))?;
    Ok(ResourceContents::text(text, uri).with_mime_type("application/json"))
}

fn not_found_error(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(
        "there is no such resource",
        Some(serde_json::json!({"uri": uri})),
    )
}

fn read_error(uri: &str, error: Error) -> ErrorData {
    if matches!(
        error.code,
        ErrorCode::AgentNotFound | ErrorCode::NotFound | ErrorCode::Validation
    ) {
        return not_found_error(uri);
    }
    if let Some(cause) = &error.cause {
        tracing::error!(
            code = error.code.as_str(),
            cause,
            "reading a resource failed"
        );
    }
    ErrorData::internal_error(error.message, None)
}
