//! The hub's operations as MCP tools: `/mcp` with an agent's key, `/mcp/{channel}` with the tool token of a delivery.

mod channel;
mod channel_tools;
mod endpoint;
mod envelope;
mod fit_page;
mod frame;
mod hub_tools;
mod market;
mod prompts;
mod resource_metadata;
mod resources;
mod schema;
mod shared_args;
mod since_arg;
mod tool;
mod tool_call;
mod tool_error;
mod tool_group;
mod tool_span;

use crate::http::app_state::AppState;
use rmcp::model::Tool;
use utoipa_axum::router::OpenApiRouter;

pub use prompts::{list_prompts, message_receiver, render_prompt};
pub use resources::{is_resource_uri, list_resource_templates, list_resources, skill_language};
pub use tool_group::ToolGroups;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(endpoint::routes())
        .merge(channel_tools::routes())
        .merge(resource_metadata::routes())
}

/// The tool list of `/mcp`, for a stdio server that passes the calls on.
pub fn list_hub_tools() -> Vec<Tool> {
    tool::tool_list(hub_tools::hub_tools())
}
