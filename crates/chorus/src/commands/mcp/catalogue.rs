//! What the host may see of a hub: our own descriptions, and answers without hidden text.
//!
//! A host takes the descriptions of tools and prompts for instructions. They come from this binary, so that a hub cannot
//! write them; the hub only says which tools it has.

use crate::command_client::CommandClient;
use crate::commands::init::skill::{HubNames, SkillLanguage, skill_text};
use crate::hidden_text::{clean_value, escape_json, remove_hidden};
use chorus_wire::identity;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptRequestParams, ReadResourceResult, ResourceContents,
    Tool,
};
use serde::Deserialize;
use std::collections::HashSet;

/// The names in a hub's tool list; the rest of it is not read.
#[derive(Debug, Deserialize)]
pub struct OfferedTools {
    tools: Vec<OfferedTool>,
}

#[derive(Debug, Deserialize)]
struct OfferedTool {
    name: String,
}

/// The built-in tools that the hub has; all of them if the hub did not answer.
pub fn list_tools(offered: Option<OfferedTools>) -> Vec<Tool> {
    let mut tools = chorus_server::mcp::list_hub_tools();
    if let Some(offered) = offered {
        let names: HashSet<&str> = offered
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        tools.retain(|tool| names.contains(tool.name.as_ref()));
    }
    tools
}

pub fn has_tool(name: &str) -> bool {
    chorus_server::mcp::list_hub_tools()
        .iter()
        .any(|tool| tool.name == name)
}

/// A tool's result without hidden characters. Our tools answer with text and data; other content is dropped.
pub fn clean_result(mut result: CallToolResult) -> CallToolResult {
    result.content = result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|text| ContentBlock::text(remove_hidden(&text.text)))
        .collect();
    if let Some(data) = &mut result.structured_content {
        clean_value(data);
    }
    result.meta = None;
    result
}

/// A JSON-RPC error without hidden characters.
pub fn clean_error(error: ErrorData) -> ErrorData {
    ErrorData::new(error.code, remove_hidden(&error.message), None)
}

/// The skill text of this binary, if the URI names one.
pub fn read_skill(command: &CommandClient, uri: &str) -> Option<ReadResourceResult> {
    let lang = chorus_server::mcp::skill_language(uri)?;
    let lang = SkillLanguage::from_tag(lang)?;
    let host = command.credentials.agent_id.split_once('@')?.1;
    let hub = HubNames {
        url: command.client.base_url().to_owned(),
        host: host.to_owned(),
    };
    let contents =
        ResourceContents::text(skill_text(lang, &hub), uri).with_mime_type("text/markdown");
    Some(ReadResourceResult::new(vec![contents]))
}

/// The JSON of a resource that a hub returned; anything else is an error.
pub fn clean_resource(
    uri: &str,
    read: ReadResourceResult,
) -> Result<ReadResourceResult, ErrorData> {
    let [ResourceContents::TextResourceContents { text, .. }] = read.contents.as_slice() else {
        return Err(not_understood());
    };
    let _: serde::de::IgnoredAny = serde_json::from_str(text).map_err(|_| not_understood())?;
    let contents =
        ResourceContents::text(escape_json(text), uri).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents]))
}

fn not_understood() -> ErrorData {
    ErrorData::internal_error("The hub's answer was not understood.", None)
}

/// The culture of the receiver that a prompt names, if the hub knows it.
pub async fn find_culture(
    command: &CommandClient,
    request: &GetPromptRequestParams,
) -> Option<String> {
    let receiver = chorus_server::mcp::message_receiver(request)?;
    let record = command.client.fetch_record(receiver).await.ok()?;
    let culture = record.agent_card?.user_culture()?.to_owned();
    // The prompt speaks with the user's voice, so only a tag may come from the hub.
    identity::check_culture_tag("culture", &culture).ok()?;
    Some(culture)
}
