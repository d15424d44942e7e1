//! The tools of messages: send, inbox, history and the directory.

mod discover;
mod history;
mod inbox;
mod send;

use super::tool::ToolDefinition;
use super::tool_call::ToolCall;

pub fn envelope_tools() -> Vec<ToolDefinition<ToolCall>> {
    [
        send::send_tools(),
        inbox::inbox_tools(),
        history::history_tools(),
        discover::discover_tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
